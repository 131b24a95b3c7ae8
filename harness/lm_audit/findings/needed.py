"""How many independent units would tell what these could not."""

from __future__ import annotations

import math
from collections.abc import Callable

from lm_audit.findings.beyond import LEVEL, beyond_null
from lm_audit.findings.exact_shares import exact_share
from lm_audit.findings.record import Finding
from lm_audit.stats.covering import fewest_units, independent_units
from lm_audit.stats.estimate import Estimate

MOST = 10**7


def units_that_would_tell(finding: Finding) -> int | None:
    """The number of independent units, in all, with which a value as measured would be found or excluded.

    Of a share by its exact interval. Of anything else by the width of its interval, which goes with the root of the
    number, and at least as many as leave both answers open (:func:`lm_audit.planning.forecast.units_needed`). Of what
    only the correction for the number of findings leaves open, by its p-value. ``None`` where no spread is known, or
    more than ten million would be needed.
    """
    effect, null = finding.effect, finding.null
    units = None if effect is None else independent_units(effect)
    if effect is None or effect.value is None or null is None or not units:
        return None
    if units < fewest_units(effect):
        # The width of an interval that does not cover says nothing of the spread.
        return fewest_units(effect)
    if beyond_null(finding):
        return _corrected_units(finding, units)
    if exact_share(effect):
        exact = _share_units(finding, effect.value, null, units)
        return None if exact is None else max(exact, units + 1)
    half = _half(effect)
    if not half:
        return None
    distance = abs(effect.value - null)
    room = distance if finding.margin is None else max(distance, finding.margin - distance)
    if room <= 0:
        return None
    needed = max(math.ceil(units * (half / room) ** 2), units + 1, _planned(finding, effect, units, half, null))
    return needed if needed <= MOST else None


def _corrected_units(finding: Finding, units: int) -> int | None:
    """Units with which an effect that the interval alone shows would stand once corrected; a t goes with their root."""
    from scipy.special import stdtrit

    p = finding.p
    if p is None or not 0 < p < 1:
        return None
    level = LEVEL if not finding.adjusted else LEVEL * p / finding.adjusted
    effect, null = finding.effect, finding.null
    if effect is not None and effect.value is not None and null is not None and exact_share(effect) and 0 < null < 1:
        return _share_units_at(level, effect.value, null, units)
    df = max(1, units - 1)
    needed = max(math.ceil(units * float(stdtrit(df, level / 2) / stdtrit(df, p / 2)) ** 2), units + 1)
    return needed if needed <= MOST else None


def _share_units(finding: Finding, share: float, null: float, units: int) -> int | None:
    """The fewest units with which a share as measured lies beyond ``null``, or nearer to it than the margin."""
    from lm_audit.stats import share_limits

    def tells(n: int) -> bool:
        low, high = share_limits(share, n)
        margin = finding.margin
        up, down = max(0.0, high - null), max(0.0, null - low)
        far = {"above": up, "below": down, "either": max(up, down)}[finding.side]
        found = {"above": low > null, "below": high < null, "either": low > null or high < null}[finding.side]
        return found or (margin is not None and far <= margin)

    return _fewest(tells, units)


def _share_units_at(level: float, share: float, null: float, units: int) -> int | None:
    """The fewest units, more than ``units``, with which the test of a share as measured has a p-value of ``level``."""
    from lm_audit.stats.shares.clustered_share import share_p

    return _fewest(lambda n: share_p(share, n, null) <= level, units + 1)


def _fewest(tells: Callable[[int], bool], start: int) -> int | None:
    """The fewest units from ``start`` on that tell, where more tell as well; ``None`` beyond ten million."""
    high = start
    while not tells(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return max(high, start)


def _half(effect: Estimate) -> float | None:
    assert effect.value is not None
    halves = [abs(effect.value - bound) for bound in (effect.low, effect.high) if bound is not None]
    return max(halves, default=None)


def _planned(finding: Finding, effect: Estimate, units: int, half: float, null: float) -> int:
    """The fewest units with which the margin can be both kept and exceeded, by the plan's own arithmetic."""
    if finding.margin is None:
        return 0
    from scipy.special import stdtrit

    from lm_audit.audits.design import Design
    from lm_audit.gates.gate import Gate
    from lm_audit.planning.forecast import units_needed

    design = Design(
        metric=finding.metric or finding.key,
        kind="mean",
        units=units,
        sd=half * math.sqrt(units) / float(stdtrit(max(1, units - 1), 0.975)),
        chance=null,
        fewest=effect.fewest,
    )
    low = -math.inf if finding.side == "above" else null - finding.margin
    high = math.inf if finding.side == "below" else null + finding.margin
    return units_needed(design, Gate(design.metric, low, high)) or 0
