"""Adaptive sampling: samples go to the lengths whose accuracy is not yet told apart from the threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from lm_audit.audits.needle.grid.cells import share
from lm_audit.audits.needle.grid.cliff import cliff
from lm_audit.errors import UsageError
from lm_audit.stats import Estimate, share_limits

Place = tuple[int, float, int]
"""Length, depth and the sample's number within the cell."""
Ask = Callable[[Sequence[Place]], Sequence[float]]

SURE = 0.995
"""Probability, given a length's answers so far, of how a full grid would end at which the length is settled."""


@dataclass
class AdaptiveRun:
    """Scores by length (in the order asked for), the cliff, how many samples it took and what a full grid takes."""

    threshold: float
    full: int
    scores: dict[int, list[float]] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Samples that were answered."""
        return sum(len(scores) for scores in self.scores.values())

    @property
    def spent(self) -> Estimate:
        """Samples that were answered, as a share of those of the full grid."""
        note = f"{self.samples} samples instead of the {self.full} of the full grid"
        return Estimate(
            self.samples / self.full, n=self.samples, method="count", unit="share", better="lower", note=note
        )

    @property
    def accuracy(self) -> dict[int, Estimate]:
        """Accuracy by length, with Clopper-Pearson's 95% interval."""
        return {length: share(scores) for length, scores in self.scores.items()}

    @property
    def cliff(self) -> Estimate:
        """The cliff, as :func:`lm_audit.audits.needle.grid.cliff.cliff` finds it from the accuracy so far."""
        return cliff(self.accuracy, self.threshold)


def find_cliff(
    lengths: Sequence[int],
    depths: Sequence[float],
    ask: Ask,
    *,
    threshold: float,
    most: int,
    precision: float = 0.0,
) -> AdaptiveRun:
    """Ask for samples, one at every depth of a length at a time, until the cliff is known.

    The first round asks every length. After that the length with the widest interval is next, among those that can
    still move the cliff: not settled, and none shorter is settled below. A length is settled where the answers so far
    tell with 99.5% probability on which side of the threshold its lower bound would end in a full grid (``most``
    samples a depth; beta-binomial, Jeffreys prior), or where its 95% interval has a half width of ``precision`` or
    less. ``ask`` gives the scores (0 to 1) of the places that it is asked for.
    """
    if most < 1 or not 0 < threshold < 1 or precision < 0:
        raise UsageError(
            f"threshold {threshold}, most {most}, precision {precision}: expected a share, 1 or more, 0 or more"
        )
    run = AdaptiveRun(threshold, len(lengths) * len(depths) * most)
    ordered = sorted(lengths)
    first = [(length, depth, 0) for length in ordered for depth in depths]
    _take(run, first, ask(first))
    while (length := _next(run, ordered, len(depths) * most, precision)) is not None:
        number = len(run.scores[length]) // len(depths)
        batch = [(length, depth, number) for depth in depths]
        _take(run, batch, ask(batch))
    return run


def _take(run: AdaptiveRun, places: Sequence[Place], scores: Sequence[float]) -> None:
    for (length, _, _), score in zip(places, scores, strict=True):
        run.scores.setdefault(length, []).append(float(score))


def _next(run: AdaptiveRun, lengths: Sequence[int], most: int, precision: float) -> int | None:
    open_lengths: dict[int, float] = {}
    for length in lengths:
        side, width = _state(run.scores[length], run.threshold, most, precision)
        if side == "below":
            break  # No longer length can move the cliff.
        if side == "open":
            open_lengths[length] = width
    return max(open_lengths, key=lambda length: (open_lengths[length], -length), default=None)


def _state(scores: Sequence[float], threshold: float, most: int, precision: float) -> tuple[str, float]:
    """On which side of the threshold a length is settled, or ``open``, and the width of its interval."""
    hits, n = sum(scores), len(scores)
    now = share(scores)
    assert now.low is not None and now.high is not None
    width = now.high - now.low
    above = now.low >= threshold
    if n >= most or width <= 2 * precision:
        return "above" if above else "below" if now.high < threshold or n >= most else "settled", width
    ends_above = _probability(round(hits), n, most, _hits_needed(threshold, most))
    if above and ends_above > SURE:
        return "above", width
    return ("below" if ends_above < 1 - SURE else "open"), width


@cache
def _probability(hits: int, n: int, most: int, needed: int) -> float:
    """That so many hits of ``n`` end as ``needed`` or more of ``most``."""
    from scipy.special import betaln, gammaln

    rest, a, b = most - n, hits + 0.5, n - hits + 0.5
    further = np.arange(max(0, needed - hits), rest + 1)
    ways = gammaln(rest + 1) - gammaln(further + 1) - gammaln(rest - further + 1)
    return float(np.exp(ways + betaln(further + a, rest - further + b) - betaln(a, b)).sum())


@cache
def _hits_needed(threshold: float, n: int) -> int:
    """The fewest hits of ``n`` whose lower bound reaches the threshold; n + 1 where none does."""
    return next((k for k in range(n + 1) if share_limits(k / n, n)[0] >= threshold), n + 1)
