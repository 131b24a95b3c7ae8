"""Strict JSON lines: what is written reads back equal, and a file is either the old one or the new one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, StoreError


def dump_line(record: Mapping[str, Any]) -> str:
    """One record as strict JSON without a line break; ``ValueError`` for NaN or infinity."""
    return json.dumps(record, allow_nan=False, ensure_ascii=True)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write all records to a neighbour file, then rename it into place; ``StoreError`` if the disk refuses."""
    write_text(path, "".join(dump_line(record) + "\n" for record in records))


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically; ``StoreError`` names the file when the disk is full or not writable."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror or error}; nothing was changed") from error


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Pairs (1-based line number, record); ``DataError`` for a missing file, bad JSON or a line that is no object."""
    # Not splitlines: U+2028 and U+0085 stand inside of JSON strings.
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            yield number, _parse(line, path, number)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a whole file holds; ``DataError`` as for a line of :func:`read_lines`."""
    return _parse(text_of(path), path, None)


def text_of(path: Path) -> str:
    """The text of a file in UTF-8 (with or without BOM), GB18030 or UTF-16; ``DataError`` for anything else."""
    from lm_audit.audits.leakage.encodings import encoding_of

    if not os.path.isfile(path):
        raise DataError("there is no such file", file=path)
    try:
        with path.open(encoding=encoding_of(path), newline="") as stream:
            return stream.read()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    except UnicodeError as error:
        raise DataError(f"its text is damaged ({error}); save the file as UTF-8", file=path) from error


def _parse(text: str, path: Path, number: int | None) -> dict[str, Any]:
    try:
        record = json.loads(text, parse_constant=_refuse, object_pairs_hook=_without_doubles)
    except RecursionError as error:
        raise DataError("this JSON is nested too deeply", file=path, row=number) from error
    except ValueError as error:  # numbers of too many digits are no JSONDecodeError
        reason = getattr(error, "msg", str(error))
        raise DataError(f"this is no JSON ({reason}): {text[:60]!r}", file=path, row=number) from error
    if not isinstance(record, dict):
        raise DataError(f"a JSON object is needed, found {type(record).__name__}", file=path, row=number)
    if "\\u" in text and not _is_text(record):
        raise DataError("it holds half of a surrogate pair, which is no character", file=path, row=number)
    return record


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        double = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"the key {double!r} is given twice")
    return found


def _is_text(record: Any) -> bool:
    """Whether every string in the record can be written as UTF-8."""
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
