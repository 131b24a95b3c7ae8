"""Rows of a JSON document: a list of objects, columns as lists, or either of them under the names that tools give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles import OnDisk, chosen

_WRAPPING = ("data", "rows", "examples", "instances", "items", "records", "dataset", "questions")
_SPLITS = ("train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval")
_EXPECTED = f"a list of objects is expected, or one under a name such as {', '.join((*_WRAPPING[:3], *_SPLITS[:1]))}"


def document_rows(document: object, file: OnDisk) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The rows of a document: the name of the part, number from 1 through all that is read, row.

    A part is a split, or what stands by its name under "data" or the like; "" where there are none. All are read unless
    ``file`` names one. Raises ``DataError`` for a document of another form, for rows beside the splits, and for what is
    no object.
    """
    number, path = 0, file.path
    parts = list(_parts(document, path))
    for place in chosen([(name,) if name else () for name, _ in parts], file):
        name, rows = parts[place]
        for given in rows:
            number += 1
            # The hub's own row service wraps each row.
            row = given["row"] if isinstance(given, dict) and set(given) >= {"row_idx", "row"} else given
            if not isinstance(row, dict):
                raise DataError(f"is a JSON {type(row).__name__}; an object is expected", file=path, row=number)
            yield name, number, row


def _parts(document: object, path: Path) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(document, list):
        yield "", document
    elif not isinstance(document, dict):
        raise DataError(f"holds a JSON {type(document).__name__}; {_EXPECTED}", file=path)
    elif (columns := split_table(document) or _columns(document) or _numbered(document)) is not None:
        yield "", columns
    elif wrapped := [key for key in document if _is(key, _WRAPPING) and isinstance(document[key], list | dict)]:
        if len(wrapped) > 1:
            raise DataError(f"may hold its rows under any of {wrapped}; save the list alone", file=path)
        inner = document[wrapped[0]]
        if isinstance(inner, dict) and _columns(inner) is None and not _splits(inner):
            yield from _by_name(inner, wrapped[0], path)
        else:
            yield from _parts(inner, path)
    elif splits := _splits(document):
        others = [key for key, value in document.items() if key not in splits and _holds_rows(value)]
        if others:
            raise DataError(f"holds objects under {others} beside the splits {splits}; save one list alone", file=path)
        for split in splits:
            for name, rows in _parts(document[split], path):
                yield name or split, rows
    else:
        raise DataError(f"holds a JSON object with {[*document][:8]}; {_EXPECTED}", file=path)


def _by_name(parts: Mapping[str, Any], under: str, path: Path) -> Iterator[tuple[str, list[Any]]]:
    if not all(isinstance(rows, list) for rows in parts.values()):
        raise DataError(f"holds under {under!r} something else than lists of items by name", file=path)
    yield from parts.items()


def _splits(document: Mapping[str, Any]) -> list[str]:
    return [key for key, value in document.items() if _is(key, _SPLITS) and isinstance(value, list | dict)]


def _is(key: str, names: tuple[str, ...]) -> bool:
    return key.strip().casefold() in names


def _holds_rows(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def split_table(document: object) -> list[dict[str, Any]] | None:
    """The rows of a table that names its columns once (``orient="split"`` of pandas); ``None`` for others."""
    if not isinstance(document, dict) or not {"columns", "data"} <= set(document) <= {"columns", "data", "index"}:
        return None
    names, rows = document["columns"], document["data"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not isinstance(rows, list):
        return None
    if len(set(names)) != len(names) or not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return [dict(zip(names, row, strict=True)) for row in rows]


def _numbered(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of a table by the numbers of its rows, above or below the names of its columns (pandas' other forms)."""
    inner = [tuple(value) for value in document.values() if isinstance(value, dict)]
    if not inner or len(inner) != len(document) or len(set(inner)) != 1:
        return None
    if all(key.isdecimal() for key in document):
        return list(document.values())
    if not inner[0] or not all(key.isdecimal() for key in inner[0]):
        return None
    return [{name: column[number] for name, column in document.items()} for number in inner[0]]


def _columns(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of columns of one length; lists of objects alone are lists of rows by name."""
    columns = list(document.values())
    if not columns or not all(isinstance(column, list) for column in columns):
        return None
    if len({len(column) for column in columns}) != 1 or all(map(_holds_rows, columns)) or not columns[0]:
        return None
    return [dict(zip(document, values, strict=True)) for values in zip(*columns, strict=True)]
