"""A value that may be absent by its type, where a test says that it is there."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """``value``; the test that asks for it fails where there is none."""
    assert value is not None, "there is no value"
    return value
