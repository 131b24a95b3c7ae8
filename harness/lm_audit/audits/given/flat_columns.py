"""Structures that a table spreads over columns (``answer_info.ans0.1``, as made of JSON), put back."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from lm_audit.audits.hub_rows import structured

_INSIDE = re.compile(r"(?P<key>\w+?)(?:[._/:|]+(?P<place>[0-9]{1,3}))?")
"""What follows a structure's name and what divides it: a key, and a place in the list under it."""
_PLACE = re.compile("[0-9]{1,3}")


def unflattened(row: Mapping[str, Any], names: Collection[str], dividers: str = "./") -> dict[str, Any]:
    """The structures of these names that a row holds in columns of their parts, and not as such; empty without any.

    Under numbers alone stands a list. Cells without a value at the end of a list are none of its parts: tables have as
    many columns as the longest list.
    """
    parts = _parts(tuple(row), frozenset(names), dividers)
    found: dict[str, dict[str | int, Any]] = {}
    for column, name, key, place in parts:
        if row.get(name) is not None:
            continue
        under = found.setdefault(name, {})
        if place is None:
            under[key] = structured(row[column])
        elif isinstance(places := under.setdefault(key, {}), dict):
            places[place] = row[column]
    return {name: _listed({key: _listed(value) for key, value in under.items()}) for name, under in found.items()}


@lru_cache(maxsize=64)
def _parts(
    columns: tuple[str, ...], names: frozenset[str], dividers: str
) -> tuple[tuple[str, str, str | int, int | None], ...]:
    """Column, structure, key and place of each column that holds a part; rows of a set have the same columns."""
    found: list[tuple[str, str, str | int, int | None]] = []
    divided = tuple(dividers)
    for column in filter(None, columns):  # cells beyond a table's header stand under no name
        name = next((one for one in names if column.startswith(one) and column[len(one) : len(one) + 1] in divided), "")
        inside = _INSIDE.fullmatch(column[len(name) :].lstrip(dividers)) if name else None
        if inside is not None:
            key = inside["key"]
            place = None if inside["place"] is None else int(inside["place"])
            found.append((column, name, int(key) if _PLACE.fullmatch(key) else key, place))
    return tuple(found)


def _listed(value: Any) -> Any:
    """The list whose parts stood in columns by their places; any other value as it is."""
    if not isinstance(value, dict) or not value or not all(isinstance(place, int) for place in value):
        return value
    parts = [value.get(place) for place in range(max(value) + 1)]
    while parts and (parts[-1] is None or parts[-1] == ""):
        parts.pop()
    return parts
