"""Strict JSON, of whole files and of lines: what Python alone would let pass is refused with its place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.plain import lines_of, text_of


def json_lines(path: str | Path, *, nan_is_null: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Pairs (line from 1, object) of a JSON Lines file, blank lines passed over; ``DataError`` as :func:`parse_json`.

    Also for a line that holds no object.
    """
    yield from objects_of_lines(lines_of(path), Path(path), nan_is_null=nan_is_null)


def objects_of_lines(
    lines: Iterable[tuple[int, str]], path: Path, *, nan_is_null: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of numbered lines."""
    for number, line in lines:
        if line.strip():
            yield number, _object(parse_json(line, path, number, nan_is_null=nan_is_null), path, number)


def read_json_object(path: str | Path) -> dict[str, Any]:
    """The object that a whole file holds."""
    return _object(parse_json(text_of(path), Path(path), None), Path(path), None)


def parse_json(text: str, path: Path | None, row: int | None, *, nan_is_null: bool = False) -> Any:
    """The document in ``text``; ``nan_is_null`` for rows of a table, where ``NaN`` is how pandas writes an empty cell.

    ``DataError`` for what nests too deep, repeats a key, holds NaN, infinity or a number without end, or
    half of a surrogate pair, which is no text; :class:`NotJsonError` for what is no JSON at all.
    """
    try:
        constant = _null if nan_is_null else _constant
        document = json.loads(
            text, object_pairs_hook=_once, parse_constant=constant, parse_float=_finite, parse_int=_whole
        )
    except RecursionError as error:
        raise DataError("is nested too deeply to be read", file=path, row=row) from error
    except _Refused as error:
        raise DataError(str(error), file=path, row=row) from error
    except ValueError as error:  # JSONDecodeError, and numbers of more digits than Python turns into an integer
        if not isinstance(error, json.JSONDecodeError):
            raise DataError("is not JSON: a number has too many digits", file=path, row=row) from error
        where = f"column {error.colno}" if row is not None else f"line {error.lineno}, column {error.colno}"
        message = f"is not JSON: {error.msg} at {where}: {text[:60]!r}"
        raise NotJsonError(message, file=path, row=row) from error
    # A text that was decoded holds no surrogate unless an escape made it.
    if "\\u" in text and not _is_text(document):
        raise DataError("holds half of a surrogate pair, which is no character", file=path, row=row)
    return document


class NotJsonError(DataError):
    """Text that is no JSON at all."""


class _Refused(Exception):
    """Valid for Python, not for us."""


def _constant(name: str) -> Any:
    raise _Refused(f"holds {name}, which is no JSON value; write null, or leave the key out")


def _null(name: str) -> None:
    if name != "NaN":
        _constant(name)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Refused(f"holds the number {text[:30]}, which is too large")
    return value


def _whole(text: str) -> int:
    value = int(text)
    if len(text) > 300:  # Below, every integer is a float as well.
        _finite(text)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"has the key {key[:60]!r} twice")
    return found


def _object(document: object, path: Path, row: int | None) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise DataError(f"is a JSON {type(document).__name__}; an object is expected", file=path, row=row)
    return document


def _is_text(document: object) -> bool:
    """Whether every string in the document can be written as UTF-8."""
    try:
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
