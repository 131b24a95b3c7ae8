"""What a run can decide, before it runs: half widths, detectable effects, and gates that no outcome could settle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lm_audit.audits.design import Design
from lm_audit.gates.gate import Gate, judge
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate

CONFIDENCE = 0.95
POWER = 0.8
MOST = 10**7
"""Units beyond this are not searched for."""
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
    sd = 1.0 if design.sd is None else design.sd
    if design.kind == "share":
        low, high = _share_limits(design, _middle(design), units)
        return (high - low) / 2
    if design.kind == "mean":
        half = float(t.ppf(0.5 + CONFIDENCE / 2, units - 1)) * sd / math.sqrt(units)
        return half if design.sd is None else max(half, unseen_half(design, units))
    larger = max(units, design.others or 0)
    if design.kind == "difference":
        half = float(t.ppf(0.5 + CONFIDENCE / 2, _welch(units, larger)))
        return half * sd * math.sqrt(1 / units + 1 / larger)
    if design.kind == "auc":
        # Wilson's limits at 1/2, of as many values as Hanley and McNeil's variance of groups of these sizes stands for.
        count = 3 * units * larger / (units + larger + 1)
        quantile = float(t.ppf(0.5 + CONFIDENCE / 2, _welch(units, larger)))
        return quantile / 2 / math.sqrt(count + quantile**2)
    return None


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
    return Estimate(low + (high - low) * k / units, *_share_limits(design, k / units, units), n=units, fewest=1)


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
    from lm_audit.stats.testing.power import power_auc, power_paired_t, power_two_sample_t

    sd = 1.0 if design.sd is None else design.sd
    if design.kind == "mean":
        found = power_paired_t(n=units).value
        return None if found is None else found * sd
    if design.kind == "difference":
        found = power_two_sample_t(n=_of_equal_sides(design, units)).value
        return None if found is None else found * sd
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

    middle, span = _middle(design), _span(design)
    rejected = [k for k in range(units + 1) if not _holds(k / units, middle, units)]
    for step in range(1, 1001):
        for share in (middle + step / 1000, middle - step / 1000):
            if 0 <= share <= 1 and float(np.sum(binom.pmf(rejected, units, share))) >= POWER:
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


def _share_limits(design: Design, share: float, units: int) -> tuple[float, float]:
    from lm_audit.stats.shares.clustered_share import share_limits

    low, high = _span(design)
    limits = share_limits(share, units, CONFIDENCE)
    return low + (high - low) * limits[0], low + (high - low) * limits[1]
