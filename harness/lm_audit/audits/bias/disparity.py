"""Max-min disparity of an axis: how far apart its most and least favoured groups are, and how far chance puts them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lm_audit.audits.bias.grid import Floats
from lm_audit.stats import Estimate, bootstrap_crossed, max_min_permutation, max_min_two_way

CHANCE_DRAWS = 1000


@dataclass(frozen=True)
class Disparity:
    """The disparity in nats and two p-values of "all groups are alike".

    ``two_way`` holds its level; ``permutation`` is the omnibus test of the specification (labels permuted within
    templates and within pairs, the larger p), which rejects 15% of null grids at nominal 5% (docs/statistics.md).
    """

    estimate: Estimate
    two_way: Estimate
    permutation: Estimate


def max_min_disparity(values: Floats, *, confidence: float, n_resamples: int, seed: int) -> Disparity:
    """Largest minus smallest mean log-odds over groups in nats, and the p-values of "all groups are alike".

    ``values`` has shape (groups, templates, pairs). The interval resamples templates and pairs: its upper limit is that
    of the disparity itself, its lower limit that of the contrast between the two groups at the ends, at least 0 (a
    resampled maximum minus minimum is biased upwards and can leave the value below its own interval). It is never
    negative, so ``chance``, its mean over permuted labels, is what to hold it against.
    """
    by_cell = values.transpose(1, 2, 0)
    estimate = bootstrap_crossed(
        by_cell,
        lambda cells: float(np.ptp(cells.mean(axis=(0, 1)))),
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
    )
    means = values.mean(axis=(1, 2))
    ends = bootstrap_crossed(
        values[means.argmax()] - values[means.argmin()], confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    if estimate.value is not None and estimate.high is not None and ends.low is not None:
        low, high = max(0.0, min(ends.low, estimate.value)), max(estimate.high, estimate.value)
        estimate = replace(estimate, low=low, high=high)
    chance = chance_disparity(values, seed=seed)
    return Disparity(
        replace(estimate, unit="nats", better="lower", chance=chance),
        max_min_two_way(values, n_resamples=9999, seed=seed),
        max_min_permutation(values, n_resamples=9999, seed=seed),
    )


def chance_disparity(values: Floats, *, seed: int) -> float:
    """The mean max-min disparity when group labels are permuted, within templates or within pairs: the larger one."""
    rng = np.random.default_rng(seed)
    means = []
    for axis in (2, 1):
        clusters = values.mean(axis=axis).T  # clusters x groups
        drawn = rng.permuted(np.broadcast_to(clusters, (CHANCE_DRAWS, *clusters.shape)), axis=2)
        means.append(float(np.ptp(drawn.mean(axis=1), axis=1).mean()))
    return max(means)
