"""What it takes to be found: an interval wholly beyond the null value, and a p-value of at most 5 %."""

from __future__ import annotations

from typing import Literal

from lm_audit.stats.estimate import Estimate

LEVEL = 0.05

Side = Literal["above", "below", "either"]
"""On which side of the null value an effect is what a finding is about."""


def beyond_null(effect: Estimate | None, null: float | None, side: Side) -> bool:
    """Whether the whole interval lies beyond the null value on the side that is meant."""
    if effect is None or null is None:
        return False
    above = effect.low is not None and effect.low > null
    below = effect.high is not None and effect.high < null
    return {"above": above, "below": below, "either": above or below}[side]
