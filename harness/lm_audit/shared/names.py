"""Names that people give to models, sets and runs: printable, in one Unicode form, and told apart by the eye.

Two names of one run that look alike (``A`` and ``a``, a Latin and a Cyrillic o, a letter with its accent as one
character or as two) make a report that cannot be read, and a gate that means the one holds the other.
"""

from __future__ import annotations

import unicodedata
from argparse import ArgumentTypeError
from collections.abc import Iterable

from lm_audit.shared.number_checks import shown_shortly

_CAPITALS = str.maketrans("АВЕКМНОРСТУХІЈЅԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧՕՍ", "ABEKMHOPCTYXIJSGQWABEZHIKMNOPTYXOU")
_SMALL = str.maketrans("аеорсухіјѕԁһӏԛԝѵανορικυγσօոսհցıɡɑ", "aeopcyxijsdhlqwvavopikuyoonuhgiga")
"""Cyrillic, Greek and Armenian letters by the Latin one that they are drawn like, after Unicode's confusables.txt."""


def unreadable(text: str) -> str | None:
    """What keeps a text from being read and written again as it is, ``None`` where nothing does."""
    if not text.strip():
        return "is empty"
    for character in text:
        if not character.isprintable():
            return f"holds the character U+{ord(character):04X}, which cannot be seen"
    if text != text.strip():
        return "begins or ends with white space"
    composed = unicodedata.normalize("NFC", text)
    if composed != text:
        return f"writes a letter and its mark as two characters; write {composed!r} ({composed!a})"
    return None


def readable(text: str) -> str:
    """A type for ``argparse``: text that can be read and written again as it is, and is not empty."""
    fault = unreadable(text)
    if fault is not None:
        raise ArgumentTypeError(f"{shown_shortly(text)} {fault}")
    return text


def look(name: str) -> str:
    """What is left of a name for an eye that sees neither case, width, hidden characters nor scripts."""
    plain = unicodedata.normalize("NFKC", name).translate(_CAPITALS).casefold()
    return "".join(c for c in plain.translate(_SMALL) if unicodedata.category(c) not in ("Cf", "Mn", "Cc"))


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two different names that look alike, ``None`` where all can be told apart."""
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(look(name), name) != name:
            return seen[look(name)], name
    return None


def told_apart(name: str) -> str:
    """A name for a message about another that looks like it: quoted, with the code points of what is not ASCII."""
    text = shown_shortly(name)
    return text if name.isascii() else f"{text} ({name[:60]!a})"


def twin(name: str, known: Iterable[str]) -> str:
    """What a message says of a known name that looks like this one: ``; 'X' looks like ...``, empty for none."""
    other = next((one for one in known if one != name and look(one) == look(name)), None)
    if other is None:
        return ""
    return f"; {told_apart(name)} looks like {told_apart(other)}, and is another name; did you mean {other!r}?"
