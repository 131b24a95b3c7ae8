"""What a run can decide, before it runs: half widths, detectable effects, and gates that no outcome could settle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from lm_audit.audits.design import Design
from lm_audit.gates.gate import Gate, judge
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate

CONFIDENCE = 0.95
POWER = 0.8
MOST = 10**7
"""Units beyond this are not searched for."""
ONE_DRAW, SEVERAL_DRAWS = 1.85, 1.3
"""How many half widths a difference of shares is apart that is found in 80 %; several draws hang together."""
MOST_REFUSED = 0.8
"""Of the range of a difference of shares so much is looked at: the lower one of two is seldom 0."""
GRID = 400
"""Steps in which the range of a bounded metric is tried."""


@dataclass(frozen=True)
class Forecast:
    """What a design can show with its units: the half width expected, the smallest effect found at power 0.8.

    Both in the metric's unit; in standard deviations of one unit's value where ``relative``. ``None`` where there is no
    number, and then ``reason`` says why.
    """

    half_width: float | None
    detectable: float | None
    relative: bool = False
    reason: str | None = None


def forecast(design: Design) -> Forecast:
    """The forecast of one design; no value where its units are unknown, too few, or can never give a verdict."""
    reason = standing(design)
    if reason is not None or design.units is None:
        return Forecast(None, None, reason=reason)
    relative = design.kind in ("mean", "difference") and design.sd is None
    return Forecast(half_width(design, design.units), _detectable(design, design.units), relative)


def standing(design: Design) -> str | None:
    """Why a design decides nothing at this size whatever the limit, ``None`` where it may."""
    if design.never is not None:
        return design.never
    if design.units is None:
        return f"known only when it runs: {design.counted}"
    if design.kind == "test":
        return "a test without an interval: no gate can be held against it"
    if design.units < fewest(design):
        return f"{design.many(design.units)} of the {fewest(design)} from which on its interval covers"
    return None


def fewest(design: Design) -> int:
    """The fewest units from which on the design's interval covers."""
    return FEWEST if design.fewest is None else design.fewest


def half_width(design: Design, units: int) -> float | None:
    """Half of the interval that is expected of ``units``, where the value is what chance gives or a half."""
    from scipy.stats import t

    if units < 2:
        return None
    if design.kind == "share":
        low, high = _share_limits(design, _middle(design), _answers(design, units))
        return (high - low) / 2
    if design.kind == "shares":
        return _half_of_shares(design, units)
    if design.kind in ("mean", "difference"):
        half = _critical(design, units) * _standard_error(design, units)
        if design.kind == "difference" or design.sd is None:
            return half
        # What was not drawn lies on one side.
        return (half + max(half, unseen_half(design, units))) / 2
    larger = max(units, design.others or 0)
    if design.kind == "auc":
        # Wilson's limits at 1/2, of as many values as Hanley and McNeil's variance of groups of these sizes stands for.
        count = 3 * units * larger / (units + larger + 1)
        quantile = float(t.ppf(0.5 + CONFIDENCE / 2, _welch(units, larger)))
        return quantile / 2 / math.sqrt(count + quantile**2)
    return None


def _standard_error(design: Design, units: int) -> float:
    sd, larger = 1.0 if design.sd is None else design.sd, max(units, design.others or 0)
    return sd * math.sqrt(1 / units + (1 / larger if design.kind == "difference" else 0.0))


def _critical(design: Design, units: int) -> float:
    """How many standard errors the interval reaches to each side, on average."""
    from scipy.special import stdtrit

    from lm_audit.stats.means.mean_difference import MISSING

    # Of a difference of means the tails count as if some of its values were missing.
    kept = 1 - MISSING / units if design.kind == "difference" and design.tails else 1.0
    confidence = 1 - (1 - CONFIDENCE) * max(0.1, kept) / design.looks
    return float(stdtrit(_freedom(design, units), 0.5 + confidence / 2)) * _reach(design, units)


def _freedom(design: Design, units: int) -> float:
    if design.kind == "difference":
        return _welch(units, max(units, design.others or 0))
    return float(units - 1 + (design.crossed - 1 if design.crossed else 0))


def _reach(design: Design, units: int) -> float:
    """By how much an interval is wider on average than Student's, since few values look skewed by chance.

    Half of what it grows by for the skewness that chance gives to normal values (:mod:`lm_audit.stats.means.skewed`).
    """
    from lm_audit.stats.means.skewed import growth

    if not design.tails or units < 3:
        return 1.0
    chance = math.sqrt(12 / math.pi * (units - 2) / ((units + 1) * (units + 3)))
    return sum(growth(chance, units)) / 2


def _half_of_shares(design: Design, units: int) -> float:
    """As wide as of one share of so many answers: what both have in common makes up for that there are two."""
    from lm_audit.stats.shares.clustered_share import share_limits

    low, high = share_limits(0.5, units, 1 - (1 - CONFIDENCE) / design.looks)
    return (_span(design)[1] - _span(design)[0]) * (high - low) / 2


def _detectable_shares(design: Design, units: int) -> float | None:
    """By simulation (``benchmarks/coverage_plan.py --only refusal``); ``None`` where not even the widest is found."""
    from scipy.special import ndtri

    one = replace(design, looks=1)
    further = SEVERAL_DRAWS * _critical(one, units) / float(ndtri(0.975)) if design.tails else ONE_DRAW
    found = further * _half_of_shares(design, units)
    return found if found < MOST_REFUSED * (_span(design)[1] - _span(design)[0]) else None


def _answers(design: Design, units: int) -> float:
    """Answers that an interval of a share stands for, of ``units`` clusters."""
    if design.answers is None or not design.units:
        return float(units)
    return design.answers * units / design.units


def _welch(units: int, larger: int) -> float:
    """Welch's degrees of freedom at equal spreads."""
    return (1 / units + 1 / larger) ** 2 / (1 / (units**2 * (units - 1)) + 1 / (larger**2 * (larger - 1)))


def unseen_half(design: Design, units: int) -> float:
    """How far an interval reaches at least, whatever the spread, for units that were not drawn."""
    return 0.0 if design.reach is None else design.reach * (1 - (1 - CONFIDENCE) ** (1 / units))


def cannot_decide(design: Design, gate: Gate) -> str | None:
    """Why the gate stays undecided at this size whatever the model does, ``None`` where some outcome decides it."""
    reason = standing(design)
    if reason is not None or design.units is None:
        return reason
    if gate.n_min is not None and design.units < gate.n_min:
        return f"{design.many(design.units)} of n_min = {gate.n_min}"
    if beyond := _even_at_chance(design, gate, design.units):
        return beyond
    words = {judge(gate, outcome).word for outcome in _outcomes(design, design.units)}
    if "met" not in words and "missed" not in words:
        return f"no outcome of {design.many(design.units)} has an interval on one side of the limit"
    if "met" not in words:
        return f"it can be missed but never met: no outcome of {design.many(design.units)} lies within the limit"
    if "missed" not in words:
        return f"it can be met but never missed: no outcome of {design.many(design.units)} lies beyond the limit"
    return None


def _even_at_chance(design: Design, gate: Gate, units: int) -> str | None:
    """Where what chance gives is within the limit, and the interval around it is not: nothing good enough can be shown.

    Of a mean whose spread was not measured only what units that were not drawn add to it is known.
    """
    half = half_width(design, units)
    relative = design.kind in ("mean", "difference") and design.sd is None
    if relative:
        half = unseen_half(design, units) or None
    if half is None or design.chance is None or not gate.low <= design.chance <= gate.high:
        return None
    if design.chance - half >= gate.low and design.chance + half <= gate.high:
        return None
    return (
        f"even what chance gives ({design.chance:g}) would not be met: +- {half:.3g} with {design.many(units)}, "
        f"which reaches beyond the limit"
    )


def units_needed(design: Design, gate: Gate) -> int | None:
    """The fewest units with which the gate can be both met and missed; ``None`` where no number of them would do."""
    if design.kind == "test":
        return None

    def enough(units: int) -> bool:
        return cannot_decide(replace(design, units=units, never=None), gate) is None

    high = max(2, fewest(design), gate.n_min or 0)
    low = high - 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _outcomes(design: Design, units: int) -> list[Estimate]:
    """Estimates that a run might give: the ends of the metric's range, chance, and values around the gate's limits."""
    values = sorted({value for value in (design.low, design.high, design.chance) if value is not None})
    if design.kind == "share":
        counts = {round(i * units / GRID) for i in range(GRID + 1)}
        return [_share_outcome(design, k, units) for k in sorted(counts)]
    if design.steps:
        # Whether it lies beyond the last step is never told.
        ends = combinations_with_replacement(design.steps, 2)
        spans = [(low, None if high == design.steps[-1] else high) for low, high in ends]
        return [Estimate(low, low, high, n=units, fewest=1) for low, high in spans]
    half = half_width(design, units)
    if design.kind == "bound":
        return [Estimate(value, low=value, n=units, fewest=1) for value in (design.low or 0.0, (design.high or 1e9))]
    if half is None or (design.sd is None and design.kind in ("mean", "difference")):
        # Without a spread the value can lie anywhere and the interval be as narrow as one likes.
        half = unseen_half(design, units)
    far = 1e9
    reach = [*values, 0.0, -far, far] if design.low is None or design.high is None else values
    found = []
    for value in reach:
        low = value - half if design.low is None else max(design.low, value - half)
        high = value + half if design.high is None else min(design.high, value + half)
        width = max(1e-12, abs(value) * 1e-12)
        low, high = (low, high) if high > low else (value - width, value + width)
        found.append(Estimate(value, min(low, value), max(high, value), n=units, fewest=design.fewest))
    return found + _inside(design, half, units)


def _share_outcome(design: Design, k: int, units: int) -> Estimate:
    low, high = _span(design)
    limits = _share_limits(design, k / units, _answers(design, units))
    return Estimate(low + (high - low) * k / units, *limits, n=units, fewest=1)


def _inside(design: Design, half: float, units: int) -> list[Estimate]:
    """Values on a fine grid of a bounded metric, for limits on both sides."""
    if design.low is None or design.high is None:
        return []
    low, high = design.low, design.high
    values = [low + (high - low) * i / GRID for i in range(GRID + 1)]
    tiny = (high - low) * 1e-9
    return [
        Estimate(v, max(low, v - half - tiny), min(high, v + half + tiny), n=units, fewest=design.fewest)
        for v in values
    ]


def _detectable(design: Design, units: int) -> float | None:
    """The smallest departure from chance (of a mean, from 0) that is found with probability 0.8."""
    from scipy.special import stdtrit

    from lm_audit.stats.testing.power import power_auc

    if design.kind in ("mean", "difference"):
        # The distance at which so many estimates lie far enough off, whose own spread varies as a t does.
        missed = float(stdtrit(_freedom(design, units), POWER))
        missed *= _reach(design, units) if design.kind == "difference" else 1.0
        return (_critical(design, units) + missed) * _standard_error(design, units)
    if design.kind == "shares":
        return _detectable_shares(design, units)
    if design.kind == "auc":
        found = power_auc(n=_of_equal_sides(design, units)).value
        return None if found is None else found - 0.5
    return _detectable_share(design, units) if design.kind == "share" else None


def _of_equal_sides(design: Design, units: int) -> int:
    """The size of each of two equal sides that tell as much as ``units`` and the larger side do."""
    larger = max(units, design.others or 0)
    return math.floor(2 * units * larger / (units + larger))


def _detectable_share(design: Design, units: int) -> float | None:
    """From the middle upwards or, where that has no room, downwards."""
    from scipy.stats import binom

    middle, span, answers = _middle(design), _span(design), round(_answers(design, units))
    rejected = [k for k in range(answers + 1) if not _holds(k / answers, middle, answers)]
    for step in range(1, 1001):
        for share in (middle + step / 1000, middle - step / 1000):
            if 0 <= share <= 1 and float(np.sum(binom.pmf(rejected, answers, share))) >= POWER:
                return (span[1] - span[0]) * abs(share - middle)
    return None


def _holds(share: float, middle: float, units: int) -> bool:
    from lm_audit.stats.shares.clustered_share import share_limits

    low, high = share_limits(share, units, CONFIDENCE)
    return low <= middle <= high


def _span(design: Design) -> tuple[float, float]:
    return (0.0 if design.low is None else design.low), (1.0 if design.high is None else design.high)


def _middle(design: Design) -> float:
    low, high = _span(design)
    return 0.5 if design.chance is None else min(1.0, max(0.0, (design.chance - low) / (high - low)))


def _share_limits(design: Design, share: float, units: float) -> tuple[float, float]:
    from lm_audit.stats.shares.clustered_share import share_limits

    low, high = _span(design)
    limits = share_limits(share, units, CONFIDENCE)
    return low + (high - low) * limits[0], low + (high - low) * limits[1]
