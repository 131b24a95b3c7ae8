"""Shares and means of benchmark items, with intervals over the clusters that the items come from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.stats import Estimate, share
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.means.cluster_robust import clustered_mean as cluster_robust_mean
from lm_audit.stats.shares.share_differences import clustered_share_difference

Floats = NDArray[np.float64]
Labels = Sequence[Hashable] | NDArray[Any]


def preference_share(pairs: ArrayLike) -> Floats:
    """100 where the first score of a pair is larger, 0 where the second is, 50 for a tie; ``pairs`` is n x 2."""
    first, second = np.asarray(pairs, dtype=np.float64).T
    return np.asarray(100 * ((first > second) + 0.5 * (first == second)), dtype=np.float64)


def clustered_mean(values: ArrayLike, clusters: Labels, *, confidence: float, **fields: Any) -> Estimate:
    """The mean with an interval over clusters; ``fields`` (unit, better, chance) go into the estimate.

    A share in percent has the interval of :func:`lm_audit.stats.share`, anything else that of a cluster-robust t.
    Fewer than 6 clusters give no interval.
    """
    if fields.get("unit") == "%":
        estimate = share(np.asarray(values, dtype=np.float64) / 100, clusters, scale=100, confidence=confidence)
        return replace(estimate, **fields)
    return replace(enough(cluster_robust_mean(values, clusters, confidence=confidence), clusters), **fields)


def enough(estimate: Estimate, clusters: Labels) -> Estimate:
    """The estimate with its number of clusters; without an interval where they are fewer than 6."""
    count = len(set(clusters))
    counted = replace(estimate, units=count, fewest=FEWEST_CLUSTERS)
    if count >= FEWEST_CLUSTERS or estimate.value is None:
        return counted
    return replace(counted, low=None, high=None, note=f"{count} clusters give no interval, {FEWEST_CLUSTERS} do")


def gap(right: ArrayLike, first: NDArray[np.bool_], clusters: Labels, *, confidence: float, **fields: Any) -> Estimate:
    """Percent right on the first side minus percent right on the other, clusters as the independent units."""
    values = np.asarray(right, dtype=np.float64) / 100
    if len(values) == 0:
        return Estimate.not_estimable("no item counts towards this score (0/0)", n=0, **fields)
    return replace(clustered_share_difference(values, first, clusters, scale=100, confidence=confidence), **fields)


def rescaled(estimate: Estimate, scale: float, offset: float = 0.0, **fields: Any) -> Estimate:
    """``offset + scale * estimate``, limits too; ``scale`` above 0."""
    moved = {
        name: offset + scale * value
        for name in ("value", "low", "high")
        if (value := getattr(estimate, name)) is not None
    }
    return replace(estimate, **moved, **fields)
