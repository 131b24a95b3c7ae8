"""Max-min disparity of an axis: how far apart its most and least favoured groups are, and how far chance puts them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lm_audit.audits.bias.grid.measurement import Floats
from lm_audit.stats import Estimate, max_min_permutation
from lm_audit.stats.means.disparity import FEWEST_LEVELS
from lm_audit.stats.means.disparity import max_min_disparity as crossed_disparity


@dataclass(frozen=True)
class Disparity:
    """The disparity in nats and two p-values of "all groups are alike".

    ``two_way`` holds its level and agrees with the interval; ``permutation`` is the omnibus test of the specification
    (labels permuted within templates and within pairs, the larger p), which rejects 15% of null grids at nominal 5%.
    """

    estimate: Estimate
    two_way: Estimate
    permutation: Estimate


def max_min_disparity(values: Floats, *, confidence: float, seed: int) -> Disparity:
    """Largest minus smallest mean log-odds over groups in nats, and the p-values of "all groups are alike".

    ``values`` has shape (groups, templates, pairs). It is never negative, so ``chance``, its mean where all groups are
    alike, is what to hold it against. The interval is that of :func:`lm_audit.stats.means.disparity.max_min_disparity`.
    """
    found = crossed_disparity(values, confidence=confidence, seed=seed)
    units = min(values.shape[1:])
    fields: dict[str, Any] = {
        "unit": "nats",
        "better": "lower",
        "chance": found.chance,
        "units": units,
        "fewest": FEWEST_LEVELS,
    }
    return Disparity(
        replace(found.estimate, **fields),
        found.p_value,
        max_min_permutation(values, n_resamples=9999, seed=seed),
    )
