"""Rows of JSON and JSON Lines files, in the forms that multiple-choice sets are published in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.given.json_documents import split_table
from lm_audit.audits.leakage.items.columns import has_known_columns
from lm_audit.audits.leakage.items.rows.nested_rows import is_nested, of_chat
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import json_lines, parse_json, text_of
from lm_audit.shared.textfiles.json_text import NotJsonError, objects_of_lines
from lm_audit.shared.textfiles.packed import opened_bytes

Rows = Iterator[tuple[int, Mapping[str, Any]]]

_WRAPPING = ("data", "rows", "examples", "questions")
_DEEPEST = 4
"""So many levels of names above the rows are followed: split, subject, id."""


@dataclass(frozen=True)
class JsonPart:
    """Rows under one name of a document (a subject, a split), numbered from 1; ``name`` is "" where there is none."""

    name: str
    rows: Rows


def jsonl_parts(path: Path) -> Iterator[JsonPart]:
    """One object a line; blank lines are passed over. A line that holds whole columns as lists gives their rows.

    A file that is one JSON array in spite of its ending is read as :func:`json_parts` does.
    """
    if _begins(path, "["):
        yield from json_parts(path)
    else:
        yield JsonPart("", _of_lines(json_lines(path, nan_is_null=True)))


def json_parts(path: Path) -> Iterator[JsonPart]:
    """The rows of a document, part by part.

    An array of objects; an object of equally long lists (columns), or of columns by row; either of them under "data",
    "rows", or the only name that holds rows; parts of it by name (subjects, splits), rows by name (their ids). A file
    that holds one object a line in spite of its ending is read so. Raises ``DataError`` for any other document.
    """
    text = text_of(path)
    try:
        document = parse_json(text, path, None, nan_is_null=True)
    except NotJsonError:
        if not _holds_lines(text):
            raise
        yield JsonPart("", _of_lines(objects_of_lines(enumerate(text.split("\n"), start=1), path, nan_is_null=True)))
        return
    for name, rows in _parts(document, path, ()):
        yield JsonPart("/".join(name), _numbered(rows, path))


def _begins(path: Path, mark: str) -> bool:
    """Whether the file's text begins so and is no line of its own: an array of rows over one line or several."""
    try:
        with opened_bytes(path) as handle:
            head = handle.read(64)
    except OSError as error:  # gone since it was looked at
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    return head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")[:1] == mark


def _holds_lines(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    return first.startswith("{") and first.rstrip().endswith("}") and bool(rest.strip())


def _of_lines(lines: Iterator[tuple[int, dict[str, Any]]]) -> Rows:
    for number, document in lines:
        # The turns of one chat are no column of rows.
        for row in (None if of_chat(document) else _table_of(document)) or [document]:
            yield number, row


_Named = Iterator[tuple[tuple[str, ...], list[Any]]]


def _parts(document: object, path: Path, name: tuple[str, ...]) -> _Named:
    document = split_table(document) or document
    if isinstance(document, dict) and not is_nested(document):
        inner = next((document[key] for key in _WRAPPING if key in document), None)
        if isinstance(inner, list | dict) and (_are_rows(inner) or not _is_row(document)):
            document = inner
    named = _named(document) if len(name) < _DEEPEST else {}
    if named:
        for key, part in named.items():
            yield from _parts(part, path, (*name, key))
        return
    rows = _table_of(document) or _by_id(document) or document
    if isinstance(rows, dict) and _is_row(rows):
        rows = [rows]
    if not isinstance(rows, list):
        raise DataError(
            f"holds a JSON {type(document).__name__}; a list of objects or an object of equally long lists is expected",
            file=path,
        )
    yield name, rows


def _numbered(rows: list[Any], path: Path) -> Rows:
    for number, given in enumerate(rows, start=1):
        row = _of_list(given) or given
        if not isinstance(row, dict):
            raise DataError(f"is a JSON {type(row).__name__}; an object is expected", file=path, row=number)
        # The hub's own row service wraps each row.
        yield number, row["row"] if set(row) >= {"row_idx", "row"} and isinstance(row["row"], dict) else row


def _of_list(value: object) -> dict[str, Any] | None:
    """The row of a list that holds a passage (a text or its lines), its questions, perhaps an id (DREAM)."""
    if not isinstance(value, list) or len(value) < 2:
        return None
    passage, questions, *rest = value
    lines = [passage] if isinstance(passage, str) else passage
    if not isinstance(lines, list) or not isinstance(questions, list) or not questions:
        return None
    if not all(isinstance(line, str) for line in lines) or not all(isinstance(one, dict) for one in questions):
        return None
    name = {"passage_id": rest[0]} if rest and isinstance(rest[0], str | int) else {}
    return {"passage": "\n".join(lines), "questions": questions, **name}


def _is_row(value: object) -> bool:
    """Whether an object has the columns of a question, or of a list of questions with their options."""
    if not isinstance(value, dict):
        return False
    # "0", "1", ... may be columns of options, but are the numbers of rows where pandas wrote a table by columns.
    return has_known_columns([name for name in value if not name.isdigit()]) or is_nested(value)


def _are_rows(value: object) -> bool:
    if isinstance(value, dict):
        return bool(_by_id(value)) or (_is_row(value) and all(map(_is_row, _table_of(value) or [{}])))
    return isinstance(value, list) and bool(value) and all(map(_is_row, value))


def _named(document: object) -> dict[str, Any]:
    """The parts of an object that holds lists of rows by name; empty where it holds none.

    Beside them may stand what says something of the set (a version, a date, keywords), but nothing that may be rows.
    """
    if not isinstance(document, dict) or is_nested(document):
        return {}
    parts = {key: value for key, value in document.items() if _are_rows(value) or _named(value)}
    others = [value for key, value in document.items() if key not in parts]
    if others and _is_row(document):  # "a" and "b" may be options, and subjects where both hold rows
        return {}
    return parts if all(map(_tells_of_the_set, others)) else {}


def _tells_of_the_set(value: object) -> bool:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return not any(isinstance(one, list | dict) for one in inner)


def _by_id(document: object) -> list[dict[str, Any]] | None:
    """The rows of an object that holds them by their ids, or columns by the ids of rows (as pandas writes tables)."""
    if not isinstance(document, dict) or not document or not all(isinstance(v, dict) for v in document.values()):
        return None
    if all(map(_is_row, document.values())):
        return [{"id": key, **row} for key, row in document.items()]
    names = [tuple(column) for column in document.values()]
    if not _is_row(document) or len(set(names)) != 1:
        return None
    return [{column: values[key] for column, values in document.items()} for key in names[0]]


def _table_of(document: object) -> list[dict[str, Any]] | None:
    """The rows of an object that holds columns as lists of one length; ``None`` where it is no such object."""
    if not isinstance(document, dict) or not document or not all(isinstance(v, list) for v in document.values()):
        return None
    lengths = {len(column) for column in document.values()}
    if len(lengths) != 1:
        return None
    return [dict(zip(document, values, strict=True)) for values in zip(*document.values(), strict=True)]
