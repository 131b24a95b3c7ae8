"""Windows of a haystack, the boundary nearest to a depth, and the text that they make with needles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.token_offsets import Integers


@dataclass(frozen=True)
class Window:
    """``units`` units of a haystack from ``start`` on, and ``extra`` characters that fill the last tokens."""

    start: int
    units: int
    extra: str = ""


@dataclass(frozen=True)
class Piece:
    """A stretch of the prompt: text of its own, or the haystack's units ``first`` to ``last - 1``."""

    text: str
    first: int = 0
    last: int = 0
    needle: int | None = None

    @property
    def is_run(self) -> bool:
        return self.last > self.first


def nearest_boundary(token_starts: Sequence[int] | Integers, depth: float) -> int:
    """The index of the boundary nearest to ``depth`` percent of all tokens; of equally near ones the lower.

    ``token_starts[i]`` is the number of tokens before boundary i; the last one is the number of all.
    """
    starts = np.asarray(token_starts, dtype=np.float64)
    return int(np.argmin(np.abs(starts - depth / 100 * starts[-1])))


def place(haystack: Haystack, window: Window, depths: Sequence[float], boundary: str) -> list[int]:
    """For each depth the unit (from the window's start) before which its needle goes: a ``sentence`` or ``word``."""
    if window.units == 0:
        return [0] * len(depths)
    every = np.arange(window.units + 1, dtype=np.int64)
    units = every if boundary == "word" else haystack.boundaries(window.start, window.units)
    starts = haystack.tokens_before(units + window.start)
    return [int(units[nearest_boundary(starts - starts[0], depth)]) for depth in depths]


def compose(haystack: Haystack, window: Window, needles: Sequence[str], places: Sequence[int]) -> list[Piece]:
    """The window with each needle before the unit of its place, as pieces whose texts make the whole.

    Needles at one place keep their order. A needle is parted from its neighbours as the haystack's own sentences are.
    """
    order = sorted(range(len(needles)), key=lambda number: places[number])
    pieces: list[Piece] = []
    done = 0
    for number in order:
        if places[number] > done:
            _add_run(haystack, window, pieces, done, places[number])
            done = places[number]
        if pieces:
            pieces.append(Piece(_separator(haystack, window, done)))
        pieces.append(Piece(needles[number], needle=number))
    if done < window.units or (window.extra and not window.units):
        if pieces:
            pieces.append(Piece(_separator(haystack, window, done)))
        _add_run(haystack, window, pieces, done, window.units)
    return pieces


def _add_run(haystack: Haystack, window: Window, pieces: list[Piece], first: int, last: int) -> None:
    begin, end = window.start + first, window.start + last
    pieces.append(Piece(haystack.slice(begin, end), begin, end))
    if last == window.units and window.extra:
        pieces.append(Piece(window.extra))


def _separator(haystack: Haystack, window: Window, unit: int) -> str:
    if 0 < unit < window.units or not haystack.joiner:
        return haystack.parting(window.start + unit)
    return haystack.joiner
