"""How large a change must be to matter, where the evidence does not say it."""

from __future__ import annotations

from lm_audit.stats.estimate import Estimate

OF_A_SHARE = 0.05
"""Five points in a hundred, for shares, AUC and average precision."""


def margin_of(estimate: Estimate, declared: float | None) -> float | None:
    """The declared margin; else five points for what lies between 0 and 1 or is in per cent; else none."""
    if declared is not None:
        return declared
    unit = (estimate.unit or "").lower()
    if unit in ("%", "percentage points"):
        return 100 * OF_A_SHARE
    return OF_A_SHARE if unit.startswith("share") or unit in ("auc", "ap") else None
