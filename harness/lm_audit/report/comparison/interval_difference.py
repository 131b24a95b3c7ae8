"""The difference of two estimates where nothing but their intervals is known."""

from __future__ import annotations

import math
import re

from lm_audit.report.comparison.direction import Turn, directions, turned
from lm_audit.stats.estimate import Estimate

UNKNOWN = "the runs hold neither the rows behind this metric nor two intervals of one confidence"
ZERO_WIDTH = "an interval without width says nothing of the spread"
FEWEST = 5
"""Values below which an interval is too narrow to tell a change from noise."""


def difference_of(a: Estimate, b: Estimate) -> tuple[Estimate, float | None]:
    """``b - a`` as if the two were independent, and its p-value; neither where an interval is missing or has no width.

    The interval recovers the variances from the two intervals, so lopsided ones stay lopsided; items that both runs
    share make it cautious, never bold. A bootstrap interval is that of the normal law with a variance over n: it is
    widened to Student's, since from few values it is too narrow. For a metric with a target the p-value is that of the
    change in distance from it. Source: Zou and Donner (2008), "Construction of confidence limits about effect measures:
    a general approach".
    """
    assert a.value is not None and b.value is not None
    d = b.value - a.value
    reason = _no_test(a, b)
    if reason:
        return Estimate(d, method="difference", note=reason, unit=a.unit), None
    low = d - math.hypot(*_halves(b, a))
    high = d + math.hypot(*_halves(a, b))
    made = Estimate(d, low, high, confidence=a.confidence, method="from the two intervals", unit=a.unit)
    return made, _p_value(a, b)


def units_behind(estimate: Estimate) -> int | None:
    """How many independent values an interval rests on; of runs from before that was told, by the method's name."""
    if estimate.units is not None:
        return estimate.units
    grid = re.search(r"(\d+) rows x (\d+) columns", estimate.method)
    if grid:
        return min(int(grid[1]), int(grid[2]))
    clusters = re.search(r"(\d+) clusters", estimate.method)
    return int(clusters[1]) if clusters else estimate.n


def _no_test(a: Estimate, b: Estimate) -> str | None:
    ends = (a.low, a.high, b.low, b.high)
    if any(end is None for end in ends) or not a.confidence or a.confidence != b.confidence:
        return UNKNOWN
    if a.low == a.high or b.low == b.high:
        return ZERO_WIDTH
    counts = [count for count in (units_behind(a), units_behind(b)) if count is not None]
    if min(counts, default=FEWEST) < FEWEST:
        return f"{min(counts)} independent values behind an interval, {FEWEST} are needed to call a change"
    return None


def _halves(down: Estimate, up: Estimate) -> tuple[float, float]:
    """The lower half of one interval and the upper half of another."""
    assert down.value is not None and down.low is not None and up.value is not None and up.high is not None
    return (down.value - down.low) * _widened(down), (up.high - up.value) * _widened(up)


def _widened(estimate: Estimate) -> float:
    """Student's quantile over the normal one, and n - 1 for n, for percentiles of a bootstrap; else 1.

    A bootstrap-t is a t interval already.
    """
    n, method = units_behind(estimate), estimate.method
    if "bootstrap" not in method or "bootstrap-t" in method or n is None:
        return 1.0
    from scipy.special import ndtri, stdtrit

    assert estimate.confidence is not None
    tail = (1 + estimate.confidence) / 2
    return float(stdtrit(n - 1, tail) / ndtri(tail) * math.sqrt(n / (n - 1)))


def _p_value(a: Estimate, b: Estimate) -> float:
    """Student's tail of the difference over the half that looks at the other value: p agrees with the limits."""
    from scipy.special import stdtr, stdtrit

    ways = directions(a, b)
    # Without a direction, or with two that contradict each other, any change is one.
    before, after = (turned(one, ways[0]) if len(ways) == 1 else Turn(1) for one in (a, b))
    (va, la, ha), (vb, lb, hb) = before.estimate(a), after.estimate(b)
    assert va is not None and vb is not None and la is not None and lb is not None and ha is not None
    assert hb is not None and a.confidence is not None
    up = vb > va
    parts = ((ha - va) if up else (va - la)) * _widened(a), ((vb - lb) if up else (hb - vb)) * _widened(b)
    half = math.hypot(*parts)
    if half == 0:
        return 1.0
    df = _degrees(parts, (units_behind(a), units_behind(b)))
    scale = float(stdtrit(df, (1 + a.confidence) / 2))
    return float(2 * stdtr(df, -abs(vb - va) * scale / half))


def _degrees(parts: tuple[float, float], counts: tuple[int | None, int | None]) -> float:
    """Welch's degrees of freedom from the two halves."""
    whole = math.hypot(*parts)
    below = sum((part / whole) ** 4 / (n - 1) for part, n in zip(parts, counts, strict=True) if n is not None)
    return 1 / below if below > 0 else 1e6
