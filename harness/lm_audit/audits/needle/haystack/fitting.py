"""Fitting a haystack window into a length: as many units as there is room for, checked on the finished prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.windows import Piece, Window, compose, place
from lm_audit.audits.needle.samples.prompt_tokens import Measured
from lm_audit.errors import DataError

SLACK = 2
"""Tokens that a prompt may stay below its length."""
_ROUNDS = 24

Measure = Callable[[Sequence[Piece]], Measured]


@dataclass(frozen=True)
class Fitted:
    """A window that fits, its pieces and what was measured of the prompt; ``rounds`` prompts were measured."""

    window: Window
    pieces: Sequence[Piece]
    measured: Measured
    rounds: int


@dataclass
class Fitter:
    """Finds the window for one prompt.

    ``room`` is the number of tokens that the prompt may have, ``depths`` the needles' in percent; ``measure`` gives the
    exact ids of a prompt with these pieces.
    """

    haystack: Haystack
    needles: Sequence[str]
    depths: Sequence[float]
    boundary: str
    room: int
    measure: Measure
    rounds: int = 0

    def fit(self, start: int, overhead: int) -> Fitted:
        """The window from unit ``start`` on; ``overhead`` is the prompt's number of tokens without any haystack."""
        best = self._most_units(start, max(0, self.haystack.units_within(start, self.room - overhead)))
        if self.room - len(best.measured) > SLACK:
            best = self._fill(best)
        if (gap := self.room - len(best.measured)) > SLACK:
            raise DataError(
                f"haystack {self.haystack.name}: no stretch of it makes a prompt of {self.room} tokens, the nearest "
                f"has {gap} less; use a text that this tokenizer can cut more finely",
                field="haystack",
            )
        return best

    def _most_units(self, start: int, guess: int) -> Fitted:
        below: Fitted | None = None
        too_many: int | None = None
        units = guess
        for _ in range(_ROUNDS):
            tried = self._try(Window(start, units))
            gap = self.room - len(tried.measured)
            if gap < 0:
                if units == 0:
                    raise DataError(f"the prompt has {-gap} tokens too many even without a haystack")
                too_many = units if too_many is None else min(too_many, units)
            else:
                below = tried if below is None or units > below.window.units else below
            step = self._step(start, units, gap)
            if below is not None and too_many is not None:
                least = below.window.units
                if too_many - least <= 1 or self.room - len(below.measured) <= SLACK:
                    return below
                # Where the haystack's own counts mislead, the middle does not.
                step = step if least < step < too_many else (least + too_many) // 2
            elif below is not None and step <= below.window.units:
                return below
            units = step
        if below is None:
            raise DataError(f"no window of the haystack fits {self.room} tokens within {_ROUNDS} tries")
        return below

    def _step(self, start: int, units: int, gap: int) -> int:
        """The number of units that the counts of the haystack propose next."""
        tokens = int(self.haystack.tokens_before(start + units) - self.haystack.tokens_before(start))
        proposed = self.haystack.units_within(start, max(0, tokens + gap))
        return min(proposed, units - 1) if gap < 0 else max(proposed, units)

    def _fill(self, best: Fitted) -> Fitted:
        """Part of the next unit, or full stops, where a whole one leaves too much room."""
        for extra in self._promising(best):
            tried = self._try(Window(best.window.start, best.window.units, extra))
            gap = self.room - len(tried.measured)
            if 0 <= gap < self.room - len(best.measured):
                best = tried
            if 0 <= gap <= SLACK:
                return tried
        return best

    def _promising(self, best: Fitted) -> Iterator[str]:
        """The fillings that by the tokens of the last few words will fit, so that few prompts are tokenised whole."""
        window, count, room = best.window, self.haystack.encoder.count, self.room - len(best.measured)
        last = window.start + window.units
        before, mark = self.haystack.slice(max(window.start, last - 8), last), "\n"
        without = count(before + mark)
        for extra in self._fillings(window):
            if 0 <= room - (count(before + extra + mark) - without) <= SLACK:
                yield extra

    def _fillings(self, window: Window) -> Iterator[str]:
        """Beginnings of the next unit, longest first, then marks of punctuation."""
        unit = window.start + window.units
        gap = self.haystack.gap(unit) if window.units else ""
        text = self.haystack.slice(unit, unit + 1)
        yield from (gap + text[:size] for size in range(len(text) - 1, 0, -1))
        mark = "。" if self.haystack.joiner == "" else " ."
        yield from (mark * count for count in range(1, 65))

    def _try(self, window: Window) -> Fitted:
        self.rounds += 1
        places = place(self.haystack, window, self.depths, self.boundary)
        pieces = compose(self.haystack, window, self.needles, places)
        return Fitted(window, pieces, self.measure(pieces), self.rounds)
