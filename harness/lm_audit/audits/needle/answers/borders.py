"""Where a number or a word stands by itself in a text, in any script: by Unicode's properties of the letters around it.

A number is part of a longer name only beside another number or a letter that has a case (Latin, Greek, Cyrillic, ...):
``a1234567``. The letters of all other scripts are written next to numbers, as particles (Korean, Amharic, Hebrew) or
since the script writes no spaces: ``是1234567。`` states 1234567. A word is bordered by what is no letter, or by a
letter of a script without spaces, which can offer no more.

What a sign joins to more digits is another number: ``1234567.5``, ``1234567,89``, ``1,234,567``, ``0.1234567``,
``1234567 890`` by a space that no line breaks at. A full stop ends a sentence where no digit follows it,
``1234567.0`` is 1234567, and a comma stands between two numbers where it is followed, or preceded, by as many digits
as a needle has.

A minus directly before the digits makes another number, ``-1234567`` and ``负1234567``. It is none where it joins
(``code-1234567``), where it stands between two numbers, behind a space before the digits (``- 1234567``), and where two
lines or more begin with it: then it marks the entries of a list.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

NUMBERS = "[0-9]{7}"

_ENUMERATES = r"\u2460-\u24ff\u2776-\u2793\u3220-\u325f\u3280-\u32bf"
"""Numbers in circles and brackets, by which lists are counted."""
_GLUES = rf"(?:(?![{_ENUMERATES}])[\p{{Lu}}\p{{Ll}}\p{{Lt}}\p{{N}}_])"
_LETTER = r"[\p{L}\p{N}_]"
_ON_IT = r"[\p{M}\p{Lm}]*"
"""Marks and tone letters that stand on the letter before them."""
_UNSPACED = (
    r"[\p{Line_Break=SA}\p{Line_Break=ID}\p{Line_Break=CJ}\p{Line_Break=NS}\p{Line_Break=AK}\p{Line_Break=AS}"
    r"\p{Hangul}\p{Tibetan}\p{Balinese}\p{Javanese}\p{Katakana}\p{Bopomofo}]"
)
"""Letters between which lines may break without a space (UAX 14), and scripts that have other rules to that effect."""

_JOINS = r"[.,'’٫٬点點]|[\u00a0\u2007\u2009\u202f](?=[0-9]{3}(?![0-9]))"
"""Decimal signs and those between thousands; of spaces those that hold a number together."""
_SPACED = r"[0-9][.'’٫٬点點]|[0-9]{1,3}[\u00a0\u2007\u2009\u202f]|\u2212"
_TIMES = "[万萬亿億兆]"
"""Ten thousand times, a hundred million times: written behind digits, they are part of the number."""

_MINUS = (
    r"(?<![\p{Lu}\p{Ll}\p{Lt}\p{N}_)\]}\-\u2010-\u2015])[\-\u2011\ufe63]"
    r"|\b(?:minus|negative)\ |[负負]|マイナス|마이너스\ ?"
)
"""Signs and words that make the number behind them another one; a hyphen joins to a letter or number before it."""

_NO_PART_BEFORE = rf"(?<!{_SPACED})(?<![0-9],(?<!(?<![0-9])[0-9]{{7}},))(?<!(?:^|\s)[.٫])(?<!{_MINUS})"
_NO_PART_AFTER = rf"(?!(?!(?:,[0-9]{{7}}|[.]0+)(?![0-9]))(?:{_JOINS})[0-9])(?!{_TIMES})"

_BEFORE = {
    True: rf"(?<!{_GLUES}{_ON_IT}){_NO_PART_BEFORE}",
    False: rf"(?:(?<!{_LETTER}\p{{M}}*)|(?<={_UNSPACED}{_ON_IT}))",
}
_AFTER = {True: rf"(?!{_GLUES}){_NO_PART_AFTER}", False: rf"(?:(?![\p{{M}}\p{{L}}\p{{N}}_])|(?={_UNSPACED}))"}


@cache
def whole(pattern: str, *, first: str = "0", last: str = "0", number: bool = False) -> Any:
    """A compiled pattern of ``pattern`` between borders; ``first`` and ``last`` are the characters at its ends.

    A border is asked for only where that end is a letter or a digit: "(x)" has none to offer. Case is ignored.
    """
    import regex  # The standard library knows no properties of characters.

    before = _BEFORE[number or first.isdecimal()] if number or first.isalnum() else ""
    after = _AFTER[number or last.isdecimal()] if number or last.isalnum() else ""
    return regex.compile(before + pattern + after, regex.IGNORECASE)


MAY_GROW = re.compile(r"(?:\*{1,3}|[.,'’٫٬点點][0-9]{0,7}|[\u00a0\u2007\u2009\u202f][0-9]{0,3})?\Z")
"""What may stand behind a number at the end of a text that goes on, so that it may yet be part of another one."""
