"""Structures that a table spreads over columns (``answer_info.ans0.1``, as made of JSON), put back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.hub_rows import structured

_INSIDE = re.compile(r"[._/:|]+(?P<key>\w+?)(?:[._/:|]+(?P<place>[0-9]{1,3}))?")
"""What follows a structure's name in that of a column: a key, and a place in the list under it."""

_APART = re.compile(r"(?P<key>ans[0-2])_(?P<part>text|info)")
"""BBQ's authors' tables of results: an answer's words and its tag, beside the answer itself."""


def unflattened(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The structures of these names that a row holds in columns of their parts, and not as such; empty without any.

    Cells without a value at the end of a list are none of its parts: tables have as many columns as the longest list.
    """
    lacking = [name for name in names if row.get(name) is None]
    found: dict[str, dict[str, Any]] = {}
    for column, value in row.items():
        for name in lacking:
            inside = _INSIDE.fullmatch(column, len(name)) if column.startswith(name) else None
            if inside is None:
                continue
            under = found.setdefault(name, {})
            if inside["place"] is None:
                under[inside["key"]] = structured(value)
            elif isinstance(places := under.setdefault(inside["key"], {}), dict):
                places[int(inside["place"])] = value
    structures = {name: {key: _listed(value) for key, value in under.items()} for name, under in found.items()}
    if "answer_info" in lacking and "answer_info" not in structures:
        structures |= _told_apart(row)
    return structures


def _listed(value: Any) -> Any:
    """The list whose parts stood in columns by their places; any other value as it is."""
    if not isinstance(value, dict) or not value or not all(isinstance(place, int) for place in value):
        return value
    parts = [value.get(place) for place in range(max(value) + 1)]
    while parts and (parts[-1] is None or parts[-1] == ""):
        parts.pop()
    return parts


def _told_apart(row: Mapping[str, Any]) -> dict[str, Any]:
    parts = {(match["key"], match["part"]): value for name, value in row.items() if (match := _APART.fullmatch(name))}
    if len(parts) != 6:
        return {}
    return {"answer_info": {key: [parts[key, "text"], parts[key, "info"]] for key in ("ans0", "ans1", "ans2")}}
