"""The interval of a change, and its agreement with the test."""

from __future__ import annotations

import math

from lm_audit.sources.spread import Spread
from lm_audit.stats.estimate import Estimate

SMALLEST = 6
"""Independent clusters below which no interval is given: none was found to cover what it says."""

LEVEL = 0.05


def t_p_value(value: float, spread: Spread) -> float:
    """Two-sided p-value of ``value`` over its standard error; NaN where there is no spread, but for a change of 0."""
    from scipy.special import stdtr

    if value == 0 and math.isfinite(spread.variance):
        return 1.0
    if not math.isfinite(spread.variance) or spread.variance <= 0 or not spread.df > 0:
        return math.nan
    away = max(0.0, abs(value) - spread.hidden) / spread.reach[0 if value > 0 else 1]
    return float(2 * stdtr(spread.df, -away / math.sqrt(spread.variance)))


def interval_of(value: float, spread: Spread, p: float | None, *, n: int, method: str) -> Estimate:
    """``value`` plus or minus t times its standard error, moved where it contradicts the exact test's ``p``.

    The limit next to 0 is then the one that the test's p-value implies (Miettinen 1976).
    """
    from scipy.special import ndtri, stdtrit

    if spread.clusters < SMALLEST:
        note = f"{spread.clusters} independent clusters, an interval needs {SMALLEST}"
        return Estimate(value, n=n, method=method, note=note)
    if not math.isfinite(spread.variance) or spread.variance <= 0:
        return Estimate(value, n=n, method=method, note="the change has no spread over the items: no interval")
    half = float(stdtrit(spread.df, 1 - LEVEL / 2)) * math.sqrt(spread.variance)
    down, up = (half * times + spread.hidden for times in spread.reach)
    low, high = value - down, value + up
    if p is not None and value and (p <= LEVEL) != (low > 0 or high < 0):
        z = max(-float(ndtri(p / 2)), 1e-12)
        near = value - value * -float(ndtri(LEVEL / 2)) / z
        low, high = (near, high) if value > 0 else (low, near)
    return Estimate(value, low, high, n=n, method=method)
