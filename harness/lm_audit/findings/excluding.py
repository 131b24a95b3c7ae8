"""From which size on an effect is excluded, in words: to exclude what matters is not to exclude everything."""

from __future__ import annotations

import math

from lm_audit.stats.digits import number
from lm_audit.stats.estimate import Estimate

NAMELESS = {"p", ""}
"""Units that say nothing that the number does not."""

SHARES = {"share", "-1..1"}
"""Units of shares, and of differences of shares."""


def excluded_words(excluded: float | None, null: float | None, side: str, effect: Estimate | None) -> str:
    """``more than 0.035 nats is excluded``; empty where nothing is, or where any effect of the side that is meant is.

    ``excluded`` is the distance from ``null``; it is rounded up to two digits, so that what is said is excluded is.
    """
    if not excluded or null is None or effect is None:
        return ""
    scale, told = _told_in(effect.unit or "", away=side == "either")
    null, excluded = scale * null, scale * excluded
    if side == "above":
        return f"above {number(_up(null + excluded), 2)}{told} is excluded"
    if side == "below":
        return f"below {number(-_up(excluded - null), 2)}{told} is excluded"
    away_from = "" if null == 0 else f" away from {number(null, 2)}"
    return f"more than {number(_up(excluded), 2)}{told}{away_from} is excluded"


def _told_in(unit: str, *, away: bool) -> tuple[float, str]:
    """By what a value is multiplied, and the unit behind it: shares as counts of a hundred, as sizes are; distances of
    percentages as points."""
    if unit in NAMELESS:
        return 1.0, ""
    if unit in SHARES:
        return 100.0, "\u00a0of 100"
    if unit.startswith("share of "):
        return 100.0, f"\u00a0of 100 {unit.removeprefix('share of ')}"
    return 1.0, f"\u00a0{'percentage points' if away and unit == '%' else unit}"


def _up(value: float) -> float:
    """``value`` with two significant digits, rounded towards more."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return math.ceil(value / step - 1e-9) * step
