"""Fields of tables as TOML and JSON give them: of the kind that is needed, and none that nobody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.number_checks import suggestion


def check_keys(
    table: object,
    file: str | Path,
    *,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    where: str = "",
    row: int | None = None,
) -> Mapping[str, Any]:
    """The table; ``DataError`` where it is none, lacks a key, or has one that nobody reads."""
    if not isinstance(table, Mapping):
        raise DataError(f"must be a table, found {_shown(table)}", file=file, row=row, field=where or None)
    known = (*needed, *optional)
    unknown = [str(key) for key in table if key not in known]
    missing = [key for key in needed if key not in table]
    if unknown:
        hint = suggestion(unknown[0], known)
        message = f"unknown key {unknown[0][:60]!r}{hint}; the keys are {', '.join(known)}"
        raise DataError(message, file=file, row=row, field=where or None)
    if missing:
        raise DataError(f"the key {missing[0]!r} is missing", file=file, row=row, field=where or None)
    return table


def text_field(
    table: Mapping[str, object], key: str, file: str | Path, *, default: str = "", row: int | None = None
) -> str:
    """A text, or ``default`` where the key is absent."""
    value = table.get(key, default)
    if not isinstance(value, str):
        raise DataError(f"must be a text, found {_shown(value)}", file=file, row=row, field=key)
    return value


def texts_field(table: Mapping[str, object], key: str, file: str | Path, *, row: int | None = None) -> list[str]:
    """A list of texts; a lone text would be taken for the list of its letters. Empty where the key is absent."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"must be a list of texts, found {_shown(value)}", file=file, row=row, field=key)
    return value


def tables_field(table: Mapping[str, object], key: str, file: str | Path) -> list[Mapping[str, Any]]:
    """A list of tables, written ``[[key]]``. Empty where the key is absent."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"must be tables [[{key}]], found {_shown(value)}", file=file, field=key)
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
