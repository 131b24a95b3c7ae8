"""Turns a value into plain JSON at the moment it is recorded, and back.

JSON has no NaN or infinity; they are kept as ``{"$float": "nan" | "inf" | "-inf"}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from lm_audit.errors import StoreError

_TAG = "$float"


def plain(value: Any, name: str = "value") -> Any:
    """``value`` as plain JSON: numpy and torch scalars become numbers, paths become text, tuples become lists.

    ``name`` is how an error calls the value. Raises ``StoreError`` for a value of any other type, by its name and type.
    """
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Enum):
        return plain(value.value, name)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _tagged(float(value))
    return _plain_other(value, name)


def _plain_other(value: Any, name: str) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(key, name): plain(entry, f"{name}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{name}[{index}]") for index, entry in enumerate(value)]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        item = value.item()
        if item is not value and type(item) is not type(value):
            return plain(item, name)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise StoreError(
        f"{name}: cannot record a value of type {kind}; record numbers, text, booleans, None, lists or mappings of them"
    )


def _key(key: Any, name: str) -> str:
    if isinstance(key, str):
        return key
    raise StoreError(f"{name}: mapping key {key!r} is of type {type(key).__name__}; keys must be text")


def _tagged(number: float) -> Any:
    return number if math.isfinite(number) else {_TAG: repr(number)}


def restored(value: Any) -> Any:
    """The inverse of :func:`plain` for what JSON gave back: tagged numbers become floats again."""
    if isinstance(value, dict):
        if value.keys() == {_TAG}:
            return float(value[_TAG])
        return {key: restored(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [restored(entry) for entry in value]
    return value
