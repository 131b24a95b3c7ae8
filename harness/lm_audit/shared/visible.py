"""The one place where text is made safe to draw, write and print: hidden characters are written out.

What a data set or a model says may hold characters that end a process (the chart library aborts on U+000B), break a
file (XML has no U+FFFE), steer a terminal (ESC) or reorder what is read (bidirectional controls). The ledger keeps them
as they are; everything that is shown goes through :func:`shown`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_KEPT = {"\n", "\t", "\u200d"}
"""Line ends, tabs, and the joiner of which emoji are made."""

Shown = TypeVar("Shown")


class _Table(dict[int, str]):
    """What ``str.translate`` asks for each character, kept once known."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _written(code)
        return found


def _written(code: int) -> str:
    character = chr(code)
    if character in _KEPT or not (unicodedata.category(character) in _HIDDEN or is_noncharacter(code)):
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_noncharacter(code: int) -> bool:
    """Whether Unicode keeps this code point out of all text: U+FDD0 to U+FDEF, and the last two of every plane."""
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE


_TABLE = _Table()

_EMPTY_LETTERS = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"}
"""Characters that count as letters or signs and show nothing: Hangul fillers, the Braille pattern without a dot."""


_UNSEEN = _EMPTY_LETTERS | {"\u200d", "\u034f"}
"""The joiners too."""


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, control, format and other characters without a shape."""
    return not any(
        not character.isspace() and unicodedata.category(character)[0] in "LNPSM" and character not in _EMPTY_LETTERS
        for character in text
    )


def seen(text: str) -> str:
    """What an eye sees of a text: letters in one Unicode form, gaps as one space, no hidden characters.

    Two texts of a contrast must differ in this: by a zero width space alone one text would be held against itself.
    """
    plain = unicodedata.normalize("NFC", text)
    return " ".join("".join(c for c in plain if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf")).split())


def look(text: str) -> str:
    """What tells two names apart where they are :func:`visible`: letters in one form, without what shows nothing.

    Joiners, variation selectors and the like stay as they are in what is shown, and nobody sees them there.
    """
    if text.isascii():
        return visible(text)
    plain = unicodedata.normalize("NFC", visible(text))
    return "".join(c for c in plain if c not in _UNSEEN and not unicodedata.name(c, "").startswith("VARIATION SEL"))


def visible(text: object) -> str:
    """``text`` with control, direction and private characters, surrogates and noncharacters written out.

    ``\\x0b``, ``\\u202e``, ``\\ud800``: what is shown is what is there. The result is valid in UTF-8 and XML, and the
    function changes nothing when it is applied again.
    """
    raw = str(text)
    return raw if raw.isprintable() else raw.translate(_TABLE)


def shown(value: Shown) -> Shown:
    """``value`` with every text in it :func:`visible`: keys and entries of mappings, lists, tuples and dataclasses."""
    made: Shown = _shown(value)
    return made


def _shown(value: object) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return _distinct(value)
    if isinstance(value, list):
        return [_shown(entry) for entry in value]
    if isinstance(value, tuple):
        parts = [_shown(entry) for entry in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _shown(getattr(value, part.name)) for part in fields(value) if part.init})
    return value


def _distinct(value: Mapping[object, object]) -> dict[Any, Any]:
    """A mapping with visible keys; one that now reads like an earlier one gets a mark, so that no entry is lost."""
    made: dict[Any, Any] = {}
    for key, entry in value.items():
        name = _shown(key)
        while name in made:
            name = f"{name}'"
        made[name] = _shown(entry)
    return made
