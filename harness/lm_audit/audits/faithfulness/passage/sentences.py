"""Units of text: sentences, words and chunks, each a partition of token numbers by character offsets.

Every token belongs to exactly one unit: the one that holds its first character. Sentences end after ``.``, ``!``,
``?`` or a CJK full stop that white space (or the end) follows; white space between sentences belongs to the following
one, but a run of newlines after a sentence is a unit of its own, and a capitalised word after a newline starts a
sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Offsets = Sequence[tuple[int, int]]

_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "jr",
        "st",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "cf",
        "fig",
        "no",
        "vol",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
        "inc",
        "ltd",
        "co",
        "corp",
    ]
)
_ENDS = re.compile(r"""[.!?。！？]+["'”’)\]»]*(?=\s|$)|[。！？]+["'”’」』）]*""")
_NEWLINES = re.compile(r"[^\S\n]*\n\s*")
_WORD_BEFORE = re.compile(r"[\w.]+$")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Units:
    """A partition of tokens: the text of each unit, its token numbers, and what kind of unit it is."""

    kind: str
    texts: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def index_of(self, token: int) -> int:
        """The unit that holds a token."""
        return next(index for index, group in enumerate(self.tokens) if token in group)


def sentence_bounds(text: str) -> list[tuple[int, int]]:
    """Half-open character ranges of the sentences; they cover the text without gaps."""
    starts = {0, *_starts_after_ends(text), *_starts_at_titles(text)}
    edges = [*sorted(start for start in starts if start < len(text)), len(text)]
    return [(start, stop) for start, stop in pairwise(edges) if stop > start]


def _starts_after_ends(text: str) -> list[int]:
    ends = [match.end() for match in _ENDS.finditer(text) if not _is_abbreviation(text, match)]
    return [end for end in ends if text[end:]]


def _is_abbreviation(text: str, match: re.Match[str]) -> bool:
    if match.group()[0] != "." or match.group() != ".":
        return False
    word = _WORD_BEFORE.search(text, 0, match.start())
    if word is None:
        return False
    before = word.group().lower()
    initial = len(before) == 1 and before.isalpha() and before != "i" and text[word.start()].isupper()
    return before in _ABBREVIATIONS or initial


def _starts_at_titles(text: str) -> list[int]:
    """A capitalised word right after newlines starts a sentence."""
    starts = []
    for match in _NEWLINES.finditer(text):
        word = _LETTERS.match(text, match.end())
        if word is not None and word.group().istitle():
            starts.append(match.end())
    return starts


def group_tokens(offsets: Offsets, bounds: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Token numbers of each character range, by the first character of the token."""
    groups: list[list[int]] = [[] for _ in bounds]
    unit = 0
    for token, (start, _) in enumerate(offsets):
        while unit + 1 < len(bounds) and start >= bounds[unit][1]:
            unit += 1
        groups[unit].append(token)
    return groups


def sentence_units(text: str, offsets: Offsets, *, ends_with_eos: str | None = None) -> Units:
    """Sentences of a text as token groups; with ``ends_with_eos`` the last token is that marker and its own unit."""
    body = offsets[:-1] if ends_with_eos is not None else offsets
    bounds = sentence_bounds(text) if body else []
    groups = group_tokens(body, bounds) if bounds else []
    named = [(text[a:b], tuple(group)) for (a, b), group in zip(bounds, groups, strict=True) if group]
    if ends_with_eos is not None:
        named.append((ends_with_eos, (len(offsets) - 1,)))
    return Units("sentence", tuple(name for name, _ in named), tuple(group for _, group in named))


def word_units(tokens: Sequence[str], *, ends_with_eos: bool = False) -> Units:
    """Words: a new one starts at a token that begins with white space, or after one that ends with it."""
    groups: list[list[int]] = []
    for index, token in enumerate(tokens):
        last = ends_with_eos and index == len(tokens) - 1
        fresh = not groups or token[:1].isspace() or tokens[index - 1][-1:].isspace()
        if fresh or last:
            groups.append([])
        groups[-1].append(index)
    texts = tuple("".join(tokens[index] for index in group) for group in groups)
    return Units("word", texts, tuple(tuple(group) for group in groups))


def chunk_units(tokens: Sequence[str], size: int) -> Units:
    """Fixed chunks of ``size`` tokens; the last may be shorter."""
    groups = [tuple(range(start, min(start + size, len(tokens)))) for start in range(0, len(tokens), size)]
    return Units("chunk", tuple("".join(tokens[i] for i in group) for group in groups), tuple(groups))
