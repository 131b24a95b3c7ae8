"""Labels that only many rows together show: what the options of one place begin or end with in all of them.

One row's "א. red", "ב. blue" may be anything; where the first option is "א. " something in every row, the second "ב. "
something, it says where an option stands, whatever its alphabet and marks are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest

from lm_audit.audits.leakage.items.cells import Unusable

ENOUGH = 5
"""So many rows with different options are no accident."""

_MOST = 0.9
"""Of the rows of a place so many begin with its label: a few may lack it, and are left out by name."""

_LONGEST = 24
_NAME = re.compile(r"[^\W_][\u0300-\u036f\ufe0f\u20e3]*|[^\w\s.,;:!?()\[\]{}<>/'\"-][\ufe0f\u20e3]*")
"""A letter or digit with its marks, or a sign that is no punctuation (🅐)."""
_LONG_NAME = re.compile(r"[^\W_]{1,4}")
_NUMERAL = re.compile(r"[IVX]+|[ivx]+")
_WORD = re.compile(r"\w*\Z")
_MARK = re.compile(r"(?:</?\w+>|\W)+")


@dataclass(frozen=True)
class PlaceLabels:
    """The label of each place, in front of the options or ``behind`` them."""

    labels: tuple[str, ...]
    behind: bool = False

    def taken_off(self, options: Sequence[str]) -> list[str] | None:
        """The options without their labels, ``None`` where none has one or nothing else tells them apart.

        Raises :class:`Unusable` where only some have theirs.
        """
        pairs = list(zip_longest(options, self.labels[: len(options)], fillvalue=None))
        has = [label is not None and self._fits(str(option), label) for option, label in pairs]
        if not any(has):
            return None
        if not all(has):
            raise Unusable("some options bear a label and others do not")
        bare = [
            (option[: -len(label)] if self.behind else option[len(label) :]).strip()
            for option, label in zip(options, self.labels, strict=False)
        ]
        return bare if len(set(bare)) == len(bare) and all(bare) else None

    def _fits(self, option: str, label: str) -> bool:
        return option.endswith(label) if self.behind else option.startswith(label)


def place_labels(rows: Sequence[Sequence[str]]) -> PlaceLabels | None:
    """The labels of a set by the options of its first ``rows``; ``None`` where they show none."""
    front = _labels(rows)
    if front is not None:
        return PlaceLabels(front)
    back = _labels([[option[::-1] for option in options] for options in rows])
    return PlaceLabels(tuple(label[::-1] for label in back), behind=True) if back is not None else None


def _labels(rows: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    begun: list[str] = []
    for place in range(max(map(len, rows), default=0)):
        there = [row[place] for row in rows if len(row) > place]
        if len(there) >= ENOUGH:
            begun.append(max(_beginnings(there), key=len, default=""))
    if len(begun) < 2 or not all(begun):
        return None
    before = _begin_alike(begun)
    # Names may have a beginning in common: that of a word ("A1", "A2"), or their own.
    for start in dict.fromkeys((len(before), len(_WORD.sub("", before)))):
        for named in (_NAME, _LONG_NAME):
            found = _framed(begun, start, named)
            if found is not None and _tells_rows_apart(rows, found):
                return found
    return None


def _framed(begun: Sequence[str], start: int, named: re.Pattern[str]) -> tuple[str, ...] | None:
    """What the beginnings have in common, another name in each, and the marks behind the names."""
    matches = [named.match(text, start) for text in begun]
    names = [match.group() for match in matches if match]
    short = 2 * sum(len(name) == 1 for name in names) >= len(names) or all(map(_NUMERAL.fullmatch, names))
    if len(set(names)) < len(begun) or not short:
        return None
    rests = [text[match.end() :] for text, match in zip(begun, matches, strict=True) if match]
    marks = _MARK.match(_begin_alike(rests))
    if marks is None:
        return None
    return tuple(begun[0][:start] + name + marks.group() for name in names)


def _begin_alike(texts: Sequence[str]) -> str:
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return "".join(column[0] for column in alike)


def _beginnings(texts: Sequence[str]) -> Iterator[str]:
    """The beginnings that nearly all texts have, each longer than the one before."""
    for length in range(1, _LONGEST + 1):
        beginning, count = Counter(text[:length] for text in texts).most_common(1)[0]
        if count < _MOST * len(texts):
            return
        yield beginning


def _tells_rows_apart(rows: Sequence[Sequence[str]], labels: Sequence[str]) -> bool:
    """Whether what follows the labels differs from row to row: options that are always the same are no labels."""
    return all(len({row[k] for row in rows if len(row) > k}) >= ENOUGH for k in range(len(labels)))
