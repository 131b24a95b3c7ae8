"""The difference of two estimates where nothing but their intervals is known."""

from __future__ import annotations

from dataclasses import replace

from lm_audit.report.oriented import Turn, turn
from lm_audit.stats.estimate import Estimate

UNKNOWN = "the runs hold neither the items behind this metric nor two intervals of one confidence"
FEWEST = 5
"""Values below which an interval is too narrow to tell a change from noise."""


def difference_of(a: Estimate, b: Estimate) -> tuple[Estimate, float | None]:
    """``b - a`` as if the two were independent, and its p-value, by the normal law; no interval where either has none.

    The interval recovers the variances from the two intervals, so lopsided ones stay lopsided; items that both runs
    share make it cautious, never bold. For a metric with a target the p-value is that of the change in distance from
    it. Source: Zou and Donner (2008), "Construction of confidence limits about effect measures: a general approach".
    """
    assert a.value is not None and b.value is not None
    d = b.value - a.value
    if not _comparable(a, b):
        return Estimate(d, method="difference", note=UNKNOWN, unit=a.unit), 1.0 if d == 0 else None
    low = d - _length(b.value, b.low, a.high, a.value)
    high = d + _length(b.high, b.value, a.value, a.low)
    few = min((e.n for e in (a, b) if e.n is not None), default=FEWEST) < FEWEST
    note = f"fewer than {FEWEST} values behind an interval: too few to call a change" if few else None
    made = Estimate(d, low, high, confidence=a.confidence, method="from the two intervals", unit=a.unit, note=note)
    return made, None if few else _p_value(a, b)


def scaled(estimate: Estimate, scale: float) -> Estimate:
    """The estimate in another unit, for example in per cent."""
    if scale == 1.0:
        return estimate
    value, low, high = (None if x is None else x * scale for x in (estimate.value, estimate.low, estimate.high))
    return replace(estimate, value=value, low=low, high=high)


def _comparable(a: Estimate, b: Estimate) -> bool:
    ends = (a.low, a.high, b.low, b.high)
    return all(end is not None for end in ends) and bool(a.confidence) and a.confidence == b.confidence


def _length(x1: float | None, x0: float | None, y1: float | None, y0: float | None) -> float:
    assert x1 is not None and x0 is not None and y1 is not None and y0 is not None
    return float(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)


def _p_value(a: Estimate, b: Estimate) -> float:
    from scipy.stats import norm

    before, after = turn(a), turn(b)
    if before.sign == 0:
        before = after = Turn(1)
    (va, la, ha), (vb, lb, hb) = before.estimate(a), after.estimate(b)
    assert va is not None and vb is not None and a.confidence is not None
    # Of a lopsided interval the half that looks at the other value is the one that counts.
    half = _length(ha, va, vb, lb) if vb > va else _length(va, la, hb, vb)
    if half == 0:
        return 1.0 if va == vb else 0.0
    z = float(norm.ppf((1 + a.confidence) / 2))
    return float(2 * norm.sf(abs(vb - va) * z / half))
