"""Where a text quotes: what stands in code, in quotation marks or in a quoted block is spoken of, not said."""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTED = re.compile(
    r"^[ ]{0,3}(?P<fence>```++|~~~++)[^\n]*\n(?:[\s\S]*?^[ ]{0,3}(?P=fence)[ \t]*$|[\s\S]*)"
    r"|(?<!`)(?P<ticks>`++)[^\n]*?(?<!`)(?P=ticks)(?!`)"
    r"|<(?P<tag>pre|code)\b[^<>]*>(?:(?!<(?P=tag)\b)[\s\S])*?</(?P=tag)>"
    r"|^[ \t]*>[^\n]*(?:\n[ \t]*>[^\n]*)*"
    r"|(?<![^\W_])(?:\b[rbf])?'[^'\n]*'(?![^\W_])|‘[^‘’\n]*’"
    r'|"[^"\n]*"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|「[^「」\n]*」|『[^『』\n]*』',
    re.MULTILINE | re.IGNORECASE,
)
"""Blocks of code, code in a line, code of HTML, lines behind ``>``, quotation marks within a line, none of them an
apostrophe within a word.

Nothing that opens goes on beyond the next one of its kind: of thousands that nothing closes each would be sought a
closing for up to the end.
"""

_REACH = 2000
"""Characters of a line that are looked through before a marker: of a reply in one line there may be thousands."""

_PAIRS = {"`": "`", "*": "*", '"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "「": "」", "『": "』"}


def quotations(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """The places ``[first, last)`` that are quoted in a text from ``start`` on, in order, found when asked for."""
    return (match.span() for match in _QUOTED.finditer(text, start))


def is_quoted_alone(text: str, first: int, last: int, start: int = 0) -> bool:
    """Whether marks of a quotation, ticks or stars stand right around ``text[first:last]``, opened in its line."""
    return opens_quotation(text, first, start) and _PAIRS[text[first - 1]] == text[last : last + 1]


def opens_quotation(text: str, first: int, start: int = 0) -> bool:
    """Whether a mark right before ``text[first]`` opens a quotation in its line behind ``start``.

    Marks that look alike on both sides open where their number is odd.
    """
    mark = text[first - 1 : first] if first > start else ""
    if mark not in _PAIRS:
        return False
    before = line_before(text, first, start)
    return mark != _PAIRS[mark] or len(re.findall(f"{re.escape(mark)}+", before)) % 2 == 1


def line_before(text: str, first: int, start: int = 0) -> str:
    """The line of ``text[first]`` up to there, from ``start`` on; of a very long one the last part."""
    start = max(start, first - _REACH)
    return text[max(start, text.rfind("\n", start, first) + 1) : first]
