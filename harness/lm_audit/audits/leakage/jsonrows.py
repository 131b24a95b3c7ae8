"""Rows of JSON and JSON Lines files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.audits.leakage.encodings import encoding_of
from lm_audit.errors import DataError

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def jsonl_rows(path: Path) -> Rows:
    """One object a line; blank lines are passed over. A line that holds whole columns as lists gives their rows."""
    with path.open(encoding=encoding_of(path)) as handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                document = parse_json(line, path, number)
                if not isinstance(document, dict):
                    raise DataError(
                        f"is a JSON {type(document).__name__}; an object is expected", file=path, row=number
                    )
                for row in _table_of(document) or [document]:
                    yield number, row


def json_rows(path: Path) -> Rows:
    """An array of objects, an object of equally long lists (columns), or either under "data" or "rows"."""
    with path.open(encoding=encoding_of(path)) as handle:
        document = parse_json(handle.read(), path, None)
    if isinstance(document, dict):
        inner = next((document[key] for key in ("data", "rows", "examples", "questions") if key in document), None)
        document = inner if isinstance(inner, list | dict) else document
    rows = _table_of(document) or document
    if not isinstance(rows, list):
        raise DataError(
            f"holds a JSON {type(document).__name__}; a list of objects or an object of equally long lists is expected",
            file=path,
        )
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"is a JSON {type(row).__name__}; an object is expected", file=path, row=number)
        # The hub's own row service wraps each row.
        yield number, row["row"] if set(row) >= {"row_idx", "row"} and isinstance(row["row"], dict) else row


def parse_json(text: str, path: Path, row: int | None) -> Any:
    """The document; ``DataError`` for what is no JSON, nests too deep, repeats a key or holds a number without end."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise DataError("nests too deep to be read", file=path, row=row) from error
    except _Repeated as error:
        raise DataError(f"has the key {error.args[0]!r} twice", file=path, row=row) from error
    except ValueError as error:  # JSONDecodeError, and numbers of more digits than Python turns into an integer
        raise DataError(f"is not JSON: {error}", file=path, row=row) from error


class _Repeated(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _Repeated(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _table_of(document: Any) -> list[dict[str, Any]] | None:
    """The rows of an object that holds columns as lists of one length; ``None`` where it is no such object."""
    if not isinstance(document, dict) or not document or not all(isinstance(v, list) for v in document.values()):
        return None
    lengths = {len(column) for column in document.values()}
    if len(lengths) != 1:
        return None
    return [dict(zip(document, values, strict=True)) for values in zip(*document.values(), strict=True)]
