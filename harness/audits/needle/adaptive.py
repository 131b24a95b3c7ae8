"""Adaptive sampling: samples go to the lengths whose accuracy is not yet told apart from the threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from harness.audits.needle.cells import share
from harness.audits.needle.cliff import cliff
from harness.errors import UsageError
from harness.stats import Estimate, wilson

Place = tuple[int, float, int]
"""Length, depth and the sample's number within the cell."""
Ask = Callable[[Sequence[Place]], Sequence[float]]

STOP_CONFIDENCE = 0.999
"""Confidence at which a length is settled early; higher than that of the result, since it is looked at many times."""


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
    def accuracy(self) -> dict[int, Estimate]:
        """Accuracy by length, with Wilson's 95% interval."""
        return {length: share(scores) for length, scores in self.scores.items()}

    @property
    def cliff(self) -> Estimate:
        """The cliff, as :func:`harness.audits.needle.cliff.cliff` finds it from the accuracy so far."""
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

    The first round asks every length. After that the length with the widest interval round the threshold is next, among
    those that can still move the cliff: not settled, and none shorter is settled below. A length is settled where its
    99.9% interval excludes the threshold, where the samples left to it (``most`` a depth) can no longer change on which
    side its lower bound ends, or where its 95% interval has a half width of ``precision`` or less. ``ask`` gives the
    scores (0 to 1) of the places that it is asked for. With ``most`` as in a full grid and no ``precision`` the cliff
    is that of the full grid but for early settling, which errs about once in a thousand lengths.
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
        side, width = _state(tuple(run.scores[length]), run.threshold, most, precision)
        if side == "below":
            break  # No longer length can move the cliff.
        if side == "open":
            open_lengths[length] = width
    return max(open_lengths, key=lambda length: (open_lengths[length], -length), default=None)


@cache
def _state(scores: tuple[float, ...], threshold: float, most: int, precision: float) -> tuple[str, float]:
    """On which side of the threshold a length is settled, or ``open``, and the width of its interval."""
    hits, n = sum(scores), len(scores)
    now = share(scores)
    assert now.low is not None and now.high is not None
    width = now.high - now.low
    if _lower(hits, most) >= threshold:
        return "above", width
    if _lower(hits + most - n, most) < threshold:
        return "below", width
    if n >= most or width <= 2 * precision:
        return ("above" if now.low >= threshold else "below" if now.high < threshold else "settled"), width
    sure = share(scores, confidence=STOP_CONFIDENCE)
    assert sure.low is not None and sure.high is not None
    if sure.low >= threshold:
        return "above", width
    return ("below" if sure.high < threshold else "open"), width


@cache
def _lower(hits: float, n: int) -> float:
    """The lower bound of a length at the end of a full grid."""
    if hits == int(hits):
        return wilson(int(hits), n).low or 0.0
    return share([hits / n] * n).low or 0.0
