"""Turns a value into plain JSON at the moment it is recorded, and back.

JSON has no NaN or infinity; they are kept as ``{"$float": "nan" | "inf" | "-inf"}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from lm_audit.errors import StoreError

_TAG = "$float"

DEEPEST = 100
"""Levels of lists and mappings that a record may have: readers and drawing libraries walk them by recursion."""

LONGEST_INT = 4_000
"""Digits of an integer; Python reads no more than 4,300 from text."""


def plain(value: object, name: str = "value", *, level: int = 0) -> Any:
    """``value`` as plain JSON: numpy and torch scalars become numbers, paths become text, tuples become lists.

    ``name`` is how an error calls the value. Raises ``StoreError`` for a value of any other type, by its name and type,
    for integers of more than :data:`LONGEST_INT` digits, and where ``value``, ``level`` levels down in its record, is
    nested more than :data:`DEEPEST` levels deep.
    """
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Enum):
        return plain(value.value, name, level=level)
    if isinstance(value, int):
        if int(value).bit_length() > LONGEST_INT * 3.32:
            raise StoreError(f"{name}: cannot record an integer of more than {LONGEST_INT} digits; record it as text")
        return int(value)
    if isinstance(value, float):
        return _tagged(float(value))
    return _plain_other(value, name, level + 1)


def _plain_other(value: object, name: str, level: int) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if level >= DEEPEST - 2:  # The record that holds the value is a level of its own.
        raise StoreError(f"{name[:200]}: cannot record what is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return {_key(key, name): plain(entry, f"{name}.{key}", level=level) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{name}[{index}]", level=level) for index, entry in enumerate(value)]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        item = value.item()
        if item is not value and type(item) is not type(value):
            return plain(item, name, level=level)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise StoreError(
        f"{name}: cannot record a value of type {kind}; record numbers, text, booleans, None, lists or mappings of them"
    )


def _key(key: object, name: str) -> str:
    if isinstance(key, str):
        return key
    raise StoreError(f"{name}: mapping key {key!r} is of type {type(key).__name__}; keys must be text")


def _tagged(number: float) -> Any:
    return number if math.isfinite(number) else {_TAG: repr(number)}


def too_deep(value: object) -> bool:
    """Whether lists and mappings are nested in each other more than :data:`DEEPEST` levels deep."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for entry in level for inner in _inner(entry)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[Any]:
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [entry for entry in entries if isinstance(entry, Mapping | list | tuple)]


def restored(value: object) -> Any:
    """The inverse of :func:`plain` for what JSON gave back: tagged numbers become floats again."""
    if isinstance(value, dict):
        if value.keys() == {_TAG}:
            return float(value[_TAG])
        return {key: restored(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [restored(entry) for entry in value]
    return value
