"""Scripts that write no spaces between words: where their text may be cut, and what borders a number there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Chinese characters, kana (also of half width) and bopomofo, as the inside of a character class."""
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9df"  # Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese
)
"""Scripts of South-East Asia that part sentences by spaces, not words."""
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
"""Korean, whose particles follow a number without a space."""

_LEANS_ON_NEXT = "\u0e40-\u0e44\u0ec0-\u0ec4"
"""Vowels of Thai and Lao that are written before their consonant."""
LONGEST_WORD = 100
"""Characters of a stretch without spaces above which it is no word: a chain of digits, encoded data, minified code."""
_STRIDE = 20


def is_unspaced(text: str) -> bool:
    """Whether the text holds a character of a script of :data:`UNSPACED`."""
    return re.search(f"[{UNSPACED}]", text) is not None


def cuts(text: str) -> Iterator[tuple[int, int]]:
    """Where a stretch without spaces may be cut: every syllable of an unspaced script, else every 20 characters.

    No cut parts a character from the marks that stand on it, unless they are 20 or more. Half-open ranges that make up
    the text.
    """
    least = 1 if is_unspaced(text) else _STRIDE
    begin = 0
    for cluster in _clusters().finditer(text):
        while cluster.end() - begin > 2 * _STRIDE:
            yield begin, begin + _STRIDE
            begin += _STRIDE
        if cluster.end() - begin >= least:
            yield begin, cluster.end()
            begin = cluster.end()
    if begin < len(text):
        yield begin, len(text)


@cache
def _clusters() -> Any:
    # The standard library knows no grapheme clusters.
    import regex

    # A run of a foreign script inside an unspaced text stays whole, as far as it is no longer than a word.
    # Flags are pairs of letters; \X counts them from the beginning of the run, in the square of its length.
    return regex.compile(rf"[!-~]{{1,{_STRIDE}}}|[\U0001f1e6-\U0001f1ff]{{1,2}}\p{{M}}*|[{_LEANS_ON_NEXT}]*\X")
