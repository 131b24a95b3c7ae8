"""Where a number or a word stands by itself in a text, in any script: by Unicode's properties of the letters around it.

A number is part of a longer name only beside another number or a letter that has a case (Latin, Greek, Cyrillic, ...):
``a1234567``. The letters of all other scripts are written next to numbers, as particles (Korean, Amharic, Hebrew) or
since the script writes no spaces: ``是1234567。`` states 1234567. A word is bordered by what is no letter, or by a
letter of a script without spaces, which can offer no more.

What a sign joins to more digits is another number: ``1234567.5``, ``1234567,89``, ``1,234,567``, ``0.1234567``,
``1234567 890`` by a space that no line breaks at, ``1234567点五``. A full stop ends a sentence where no digit follows
it, ``1234567.0`` is 1234567, and a comma stands between two numbers where it is followed, or preceded, by as many
digits as a needle has.

So is a ratio, a time, a product or a share: ``1234567/2``, ``1234567:30``, ``2×1234567``, ``1234567%``, ``1234567万``;
of two numbers with as many digits as a needle has, ``1234567/7654321``, each stands by itself. Groups of digits between
hyphens are one number too, ``555-1234567``, ``1234567-01-01``, and so are digits within an address or a file's name.

Words beside it, in whatever language, say something of a number that was found: ``1234567 million``, ``1234567
squared``, ``minus 1234567``, ``not 1234567``. A list of such words would take ``1234567 times`` or ``1234567 M.
Dupont`` for other numbers, and would never be whole.

A minus directly before the digits makes another number: ``-1234567``, ``负1234567``, ``ลบ1234567``. It is none
where it joins (``code-1234567``, ``ה-1234567``), where it stands between two numbers, behind a space before the digits
(``- 1234567``), and where two lines or more begin with it: then it marks the entries of a list.
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

_JOINS = r"[.,'’·٫٬点點]|[\u00a0\u2007\u2009\u202f](?=[0-9]{3}(?![0-9]))"
"""Decimal signs and those between thousands; of spaces those that hold a number together."""
_POINT = r"[点點](?![零〇]+(?![零〇一二三四五六七八九]))(?:[零〇二三四五六七八九]|一[零〇一二三四五六七八九])"
"""A decimal point with digits in Chinese; a single "one" behind it is more often part of "click a little"."""
_SPACED = r"[0-9][.'’·٫٬点點]|[0-9]{1,3}[\u00a0\u2007\u2009\u202f]|\u2212"
_SIGNS = r"(?!千万)[余多]?[万萬亿億兆千仟百佰十割]|成(?![\p{L}])|分(?:之|の)|" + (
    r"[백천십]만|만(?:(?![\p{L}\s])|(?=\s*(?:원|명|개|년|달러|\Z)))|억|조(?!차)|พัน|หมื่น|แสน|ล้าน|"
    r"\\?[%\u2030\u2031\u066a]|パーセント|퍼센트|e[+\u2212-]?[0-9]"
)
_TIMES = rf"(?:[\u00a0\u202f ]?(?:{_SIGNS})|\ ?[½¼¾⅓⅔⅛⅜⅝⅞]|\^\{{|\ [1-9]/[2-9])"
"""Signs of ten thousand times, a hundredth and the like, which are part of the number that they are written behind.

"千万" is none: behind seven digits it says "by all means".
"""

_LISTS = r"(?:[/:+]|\ [/+]\ )"
_PARTS = rf"(?:{_LISTS}|[÷\u2044\u2215\u2236^×]|\ [x÷×*]\ |\*\*?|\ ?(?:\u22c5|\\(?:times|cdot))\ )"
"""What makes a ratio, a time, a sum or a product of two numbers; the first of them may as well list numbers."""
_OF = r"[\u221a-\u221c]|分之|[十百千万萬亿億兆]"

_HYPHENS = r"[-\u2010\u2011\u2013]"
_GROUPS_BEFORE = (
    rf"(?<!(?<!{_GLUES})[0-9]+{_HYPHENS}(?<!(?<![0-9])[0-9]{{7}}{_HYPHENS})"
    rf"(?<!(?:\A|\n)[^\p{{L}}\p{{N}}]*[0-9]{{1,2}}{_HYPHENS}))"
)
_GROUPS_AFTER = rf"(?!{_HYPHENS}(?![0-9]{{7}}(?![0-9]))[0-9])"
"""Groups of digits between hyphens are one number (of a telephone, a date); behind a word a hyphen only joins."""

_NO_TERM_BEFORE = rf"(?<![0-9]{_PARTS}(?<!(?<![0-9])[0-9]{{7}}{_LISTS})(?<!\p{{L}}[0-9]{{1,3}}:))(?<!{_OF})"
"""No number before it of which it is a part."""
_NO_TERM_AFTER = rf"(?!(?!{_LISTS}[0-9]{{7}}(?![0-9])){_PARTS}[0-9])"

_NO_CODE_BEFORE = (
    r"(?<!\((?:\+[0-9]{1,4}|[0-9]{3,4})\))"
    r"(?<!(?:[a-z]{2,6}://|\bwww\.)[^\s<>\"'（）]{0,200})(?<!\b[\w-]{1,40}\.(?:com|org|net|io|co|cn|de|edu|gov)/[^\s<>\"'（）]{0,200})"
)
"""No code of a country or area before it, and no address of a page."""
_NO_ADDRESS_AFTER = (
    r"(?!@[\p{L}\p{N}])"
    r"(?!\.(?:pdf|jpe?g|png|gif|txt|csv|docx?|xlsx?|zip|html?|mp[34]|json|xml|com|org|net)(?![\p{L}\p{N}]))"
)
"""Not the name of a mailbox or of a file."""

_MINUS = (
    rf"(?<![\p{{Lu}}\p{{Ll}}\p{{Lt}}\p{{N}}_)\]}}\-\u2010-\u2015])(?<!(?!{_UNSPACED})\p{{L}}{_ON_IT})[\-\u2011\ufe63]"
    r"|(?<![\p{L}\p{N}])[-\u2212]\p{Sc}\ ?"
    r"|[负負]|零下|氷点下|영하|マイナス|마이너스|ลบ"
)
"""What makes the number behind it another one.

A hyphen joins to a number before it, and to a letter of a script with spaces, as Hebrew's prefixes (``ה-1234567``) do.
"""

_NO_PART_BEFORE = (
    rf"(?<!{_SPACED})(?<![0-9],(?<!(?<![0-9])[0-9]{{7}},))(?<!(?:^|\s)[.٫])(?<!{_MINUS})"
    rf"{_NO_TERM_BEFORE}{_GROUPS_BEFORE}{_NO_CODE_BEFORE}"
)
_NO_PART_AFTER = (
    rf"(?!(?!(?:,[0-9]{{7}}|[.]0+)(?![0-9]))(?:{_JOINS})[0-9])(?!{_POINT})(?!{_TIMES}){_NO_TERM_AFTER}"
    rf"{_GROUPS_AFTER}{_NO_ADDRESS_AFTER}"
)

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


_MAY_GROW = re.compile(
    r"(?:\*{1,3}|[点點][零〇一]+|[-\u2010\u2011\u2013.,'’·٫٬点點/:+÷\u2044\u2215\u2236^×][0-9]{0,7}|"
    r"\ [x/+÷×*]?\ ?|[\u00a0\u2007\u2009\u202f][0-9]{0,3})?\Z"
)


def may_grow(text: str, end: int) -> bool:
    """Whether a number that ends there may yet be part of another one, as the text goes on."""
    import regex

    behind = text[end:]
    return (
        _MAY_GROW.match(behind) is not None
        or regex.compile(_TIMES, regex.IGNORECASE).fullmatch(behind, partial=True) is not None
    )
