"""What it takes to be found: an interval wholly beyond the null value, and a p-value of at most 5 %."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_audit.findings.record import Finding

LEVEL = 0.05


def beyond_null(finding: Finding) -> bool:
    """Whether the whole interval lies beyond the null value on the side that is meant."""
    effect, null = finding.effect, finding.null
    if effect is None or null is None:
        return False
    above = effect.low is not None and effect.low > null
    below = effect.high is not None and effect.high < null
    return {"above": above, "below": below, "either": above or below}[finding.side]
