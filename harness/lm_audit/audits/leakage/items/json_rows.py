"""Rows of JSON and JSON Lines files, in the forms that multiple-choice sets are published in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles import json_lines, parse_json, text_of

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def jsonl_rows(path: Path) -> Rows:
    """One object a line; blank lines are passed over. A line that holds whole columns as lists gives their rows."""
    for number, document in json_lines(path, nan_is_null=True):
        for row in _table_of(document) or [document]:
            yield number, row


def json_rows(path: Path) -> Rows:
    """An array of objects, an object of equally long lists (columns), or either under "data" or "rows"."""
    document = parse_json(text_of(path), path, None, nan_is_null=True)
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


def _table_of(document: object) -> list[dict[str, Any]] | None:
    """The rows of an object that holds columns as lists of one length; ``None`` where it is no such object."""
    if not isinstance(document, dict) or not document or not all(isinstance(v, list) for v in document.values()):
        return None
    lengths = {len(column) for column in document.values()}
    if len(lengths) != 1:
        return None
    return [dict(zip(document, values, strict=True)) for values in zip(*document.values(), strict=True)]
