"""How many independent units would tell what these could not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lm_audit.findings.beyond import LEVEL
from lm_audit.findings.exact_shares import exact_share
from lm_audit.findings.record import Finding
from lm_audit.stats.covering import fewest_units, independent_units

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST = 10**7

POWER = 0.8
"""How often the number of units tells, where the true value is the one that was measured; as of a plan."""


def units_that_would_tell(finding: Finding) -> int | None:
    """The number of independent units, in all, with which a value as measured is found or excluded with power 0.8.

    Of a share by its exact interval. Of anything else by the spread that its interval shows, on the side that matters:
    towards the null value to find, away from it to exclude. Of what only the correction for the number of findings
    leaves open, by its p-value. ``None`` where no spread is known, or more than ten million would be needed. Checked by
    ``benchmarks/coverage_plan.py --would-tell``.
    """
    effect, null = finding.effect, finding.null
    units = None if effect is None else independent_units(effect)
    if effect is None or effect.value is None or null is None or not units:
        return None
    if units < fewest_units(effect):
        # The width of an interval that does not cover says nothing of the spread.
        return fewest_units(effect)
    if finding.beyond_null:
        return _corrected_units(finding, units)
    if exact_share(effect):
        exact = _share_units(finding, effect.value, null, units)
        return None if exact is None else max(exact, units + 1)
    distance = effect.value - null
    down, up = (None if end is None else abs(effect.value - end) for end in (effect.low, effect.high))
    return _fewest(lambda n: _power(finding, distance, (down, up), units, n) >= POWER, units + 1)


def _power(finding: Finding, distance: float, halves: tuple[float | None, float | None], units: int, n: int) -> float:
    """How often ``n`` units find or exclude a value at ``distance`` from the null value, of which ``units`` gave an
    interval with these halves below and above."""
    from scipy.special import stdtr

    scale = math.sqrt(n / units) * _quantile(units - 1, LEVEL)

    def beyond(room: float, half: float | None) -> float:
        """How often the estimate's interval, with this half towards a limit, keeps clear of it at ``room``."""
        return float(stdtr(max(1, n - 1), room / half * scale - _quantile(n - 1, LEVEL))) if half else 0.0

    down, up = halves
    found = {"above": beyond(distance, down), "below": beyond(-distance, up)}
    power = found.get(finding.side, sum(found.values()))
    if finding.margin is not None:
        kept = {"above": beyond(finding.margin - distance, up), "below": beyond(finding.margin + distance, down)}
        power += kept.get(finding.side, max(0.0, sum(kept.values()) - 1))
    return power


def _quantile(df: int, level: float) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(max(1, df), level / 2))


def _with_power(df: int, level: float) -> float:
    """How many standard errors a true value must lie away to be told at ``level`` with :data:`POWER`."""
    from scipy.special import stdtrit

    return _quantile(df, level) + float(stdtrit(max(1, df), POWER))


def _corrected_units(finding: Finding, units: int) -> int | None:
    """Units with which an effect that the interval alone shows would stand once corrected; a t goes with their root."""
    p = finding.p
    if p is None or not 0 < p < 1:
        return None
    level = LEVEL if not finding.adjusted else LEVEL * p / finding.adjusted
    effect, null = finding.effect, finding.null
    if effect is not None and effect.value is not None and null is not None and exact_share(effect) and 0 < null < 1:
        return _share_units_at(level, effect.value, null, units)
    reached = _quantile(units - 1, p)

    def stands(n: int) -> bool:
        return math.sqrt(n / units) * reached >= _with_power(n - 1, level)

    return _fewest(stands, units + 1)


def _share_units(finding: Finding, share: float, null: float, units: int) -> int | None:
    """The fewest units of whose shares, where the true one is as measured, so many lie beyond ``null``, or nearer to it
    than the margin."""
    from lm_audit.stats.shares.clustered_share import limits_of_shares

    def told(shares: Floats, n: int) -> Mask:
        low, high = limits_of_shares(shares, n)
        found = {"above": low > null, "below": high < null}.get(finding.side, (low > null) | (high < null))
        if finding.margin is None:
            return found
        up, down = high - null, null - low
        return found | ({"above": up, "below": down}.get(finding.side, np.maximum(up, down)) <= finding.margin)

    return _fewest(lambda n: _share_of(told, share, n) >= POWER, units)


def _share_of(told: Callable[[Floats, int], Mask], share: float, n: int) -> float:
    """How often the shares of ``n`` answers, in truth ``share``, are told."""
    from scipy.stats import binom

    # Further off than seven standard deviations is none.
    away = math.ceil(7 * math.sqrt(n * share * (1 - share))) + 1
    counts = np.arange(max(0, math.floor(n * share) - away), min(n, math.ceil(n * share) + away) + 1)
    return float(binom.pmf(counts, n, share)[told(counts / n, n)].sum())


def _share_units_at(level: float, share: float, null: float, units: int) -> int | None:
    """The fewest units, more than ``units``, of whose shares so many have a p-value of at most ``level``."""
    from lm_audit.stats.shares.clustered_share import limits_of_shares

    def told(shares: Floats, n: int) -> Mask:
        low, high = limits_of_shares(shares, n, 1 - level)
        return (low > null) | (high < null)

    return _fewest(lambda n: _share_of(told, share, n) >= POWER, units + 1)


def _fewest(tells: Callable[[int], bool], start: int) -> int | None:
    """The fewest units from ``start`` on that tell, where more tell as well; ``None`` beyond ten million."""
    high = start
    while not tells(high):
        high *= 2
        if high > MOST:
            return None
    low = max(start - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return high
