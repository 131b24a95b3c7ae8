"""Cells of a table as text, whatever type the file gave them."""

from __future__ import annotations

import math


class Unusable(Exception):
    """Why a row is left out; it is counted and listed."""


def text_of(value: object) -> str:
    """A cell as text: "" for null and NaN, ``3`` for 3.0; raises :class:`Unusable` for a list, a mapping or bytes."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, list | tuple | dict | set | bytes) or hasattr(value, "tolist"):
        plain = value.tolist() if hasattr(value, "tolist") and getattr(value, "ndim", 1) == 0 else None
        if plain is None:
            raise Unusable(f"a {type(value).__name__} stands where text is expected")
        return text_of(plain)
    return str(value)


def whole_characters(*texts: str) -> None:
    """Raises :class:`Unusable` where a text holds half a character (a lone surrogate), which no model can read."""
    for text in texts:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise Unusable("a text holds a lone surrogate, half of a character") from error
