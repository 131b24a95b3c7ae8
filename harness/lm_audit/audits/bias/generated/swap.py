"""Role-aware gender swap of a text: an involution that touches listed words only.

"her" is "his" before a noun and "him" elsewhere; "his" is "her" before a noun and "hers" elsewhere. Swapping without
the role gives broken grammar, which then moves the log-probabilities by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lm_audit.errors import DataError

_PAIRS = (
    ("he", "she"),
    ("himself", "herself"),
    ("man", "woman"),
    ("men", "women"),
    ("boy", "girl"),
    ("boys", "girls"),
    ("father", "mother"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("husband", "wife"),
    ("uncle", "aunt"),
    ("nephew", "niece"),
    ("king", "queen"),
    ("prince", "princess"),
    ("actor", "actress"),
    ("waiter", "waitress"),
    ("gentleman", "lady"),
    ("mr", "mrs"),
    ("sir", "madam"),
    ("john", "mary"),
    ("james", "emma"),
)
_SWAPS = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_WORD = re.compile(r"[A-Za-z]+")
_FUNCTION_WORDS = """
    a again an and are as at because before but by did does for from had has have if in is it of on or over so than that
    the then to today tomorrow twice under was were when where which while who will with would yesterday
"""
_NO_NOUN_NEXT = frozenset(_FUNCTION_WORDS.split())


@dataclass(frozen=True)
class Swapped:
    """The swapped text, and the character spans of the original that were replaced."""

    text: str
    spans: tuple[tuple[int, int], ...]


def swap_gender(text: str) -> Swapped:
    """The text with every listed gendered word replaced by its counterpart, in the same letter case.

    Raises ``DataError`` for a text without such a word, or one that swapping twice does not give back.
    """
    swapped = _swap(text)
    if not swapped.spans:
        raise DataError(f"{text!r} has no gendered word to swap")
    if _swap(swapped.text).text != text:
        raise DataError(f"{text!r} does not come back when it is swapped twice: the role of a pronoun is ambiguous")
    return swapped


def _swap(text: str) -> Swapped:
    pieces, spans, position = [], [], 0
    for match in _WORD.finditer(text):
        replacement = _counterpart(match.group(), text[match.end() :])
        if replacement is not None:
            pieces += [text[position : match.start()], replacement]
            spans.append(match.span())
            position = match.end()
    return Swapped("".join([*pieces, text[position:]]), tuple(spans))


def _counterpart(word: str, rest: str) -> str | None:
    lower = word.lower()
    if lower == "her":
        found: str | None = "his" if _noun_follows(rest) else "him"
    elif lower == "his":
        found = "her" if _noun_follows(rest) else "hers"
    elif lower in ("him", "hers"):
        found = {"him": "her", "hers": "his"}[lower]
    else:
        found = _SWAPS.get(lower)
    return None if found is None else _same_case(word, found)


def _noun_follows(rest: str) -> bool:
    following = re.match(r" ([A-Za-z]+)", rest)
    return following is not None and following.group(1).lower() not in _NO_NOUN_NEXT


def _same_case(model: str, word: str) -> str:
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word.capitalize() if model[0].isupper() else word
