"""The mean of values in clusters, with a t interval that covers from few clusters on, also where their sizes differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, cluster_numbers, finite_array
from lm_audit.stats.means.skewed import growth, skewness

METHOD = "mean, t over {} clusters (CR2, Satterthwaite)"


@checked
def clustered_mean(
    values: ArrayLike, clusters: Sequence[Hashable] | ArrayLike, *, confidence: float = 0.95
) -> Estimate:
    """The mean of all values; its interval takes clusters, not values, as the independent units.

    ``values`` and ``clusters`` (one label a value) have shape (n,). The variance is the bias-reduced CR2 of a mean, the
    degrees of freedom are Satterthwaite's (Bell and McCaffrey 2002), which fall where one cluster outweighs the rest;
    towards the longer tail of the clusters it reaches further (:mod:`lm_audit.stats.means.skewed`), by what they add to
    the mean or by their own means, whichever is the more skewed.
    One cluster, or clusters of equal means, give no interval, and the note says why. Raises ``UsageError`` where the
    lengths differ.
    """
    from scipy import stats

    array, labels = finite_array(values, "values"), [*clusters]  # type: ignore[misc]
    if len(labels) != np.size(values):
        raise UsageError(f"values has {np.size(values)} elements, clusters has {len(labels)} labels")
    if isinstance(array, str):
        return Estimate.not_estimable(array, n=np.size(values), method=METHOD.format("no"), confidence=confidence)
    numbers, n = cluster_numbers(clusters), len(array)
    sizes = np.bincount(numbers).astype(np.float64)
    method, mean = METHOD.format(len(sizes)), float(array.mean())
    if len(sizes) == 1:
        return Estimate(mean, n=n, confidence=confidence, method=method, units=1, note="one cluster: no interval")
    variance, freedom = cluster_variance(array, numbers)
    if variance <= (np.finfo(np.float64).eps * float(np.abs(array).max())) ** 2:
        note = "all clusters have the same mean: nothing tells how far chance reaches"
        return Estimate(mean, n=n, confidence=confidence, method=method, note=note, units=len(sizes))
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * variance**0.5
    down, up = _longer_tail(array, numbers)
    return Estimate(
        mean,
        mean - down * half,
        mean + up * half,
        n=n,
        confidence=confidence,
        method=method,
        units=len(sizes),
        fewest=FEWEST_CLUSTERS,
    )


def cluster_variance(values: Array, numbers: Integers) -> tuple[float, float]:
    """The CR2 variance of the mean of ``values`` (n,) in clusters 0, 1, ..., and its degrees of freedom.

    ``numbers`` (n,): each value's cluster; 0 and 1 of a single one.
    """
    n, sizes = len(values), np.bincount(numbers).astype(np.float64)
    if len(sizes) == 1:
        return 0.0, 1.0
    factors = _factors(sizes)
    totals = cluster_deviations(values, numbers)
    # The matrix diag(own) - outer(shared, shared) / n, of which trace and squares are all that is asked.
    own, shared = factors**2 * sizes, factors * sizes
    trace = float(own.sum() - (shared**2).sum() / n)
    squares = float((own**2).sum() - 2 * (own * shared**2).sum() / n + (shared**2).sum() ** 2 / n**2)
    return float((totals**2).sum()), trace**2 / squares


def _longer_tail(values: Array, numbers: Integers) -> tuple[float, float]:
    """By which factors the parts below and above the mean grow for what lies far out and was not drawn.

    By the skewness of what the clusters add to the mean, or by that of their means where it is the larger: where sizes
    differ, a cluster that lies far out may be a small one by chance (of 6 to 20 lognormal clusters of 1 to 50 values
    88 to 93 % were covered, with the means' 93 to 96).
    """
    sizes = np.bincount(numbers).astype(np.float64)
    means: Array = np.bincount(numbers, weights=values) / sizes
    sides = [growth(skewness(some), len(sizes)) for some in (cluster_deviations(values, numbers), means)]
    return max(down for down, _ in sides), max(up for _, up in sides)


def _factors(sizes: Array) -> Array:
    """A cluster's total deviation is too small by its own share of the mean, which its factor gives back."""
    n = sizes.sum()
    factors: Array = 1 / (n * np.sqrt(1 - sizes / n))
    return factors


def cluster_deviations(values: Array, numbers: Integers) -> Array:
    """By how much each cluster (``numbers``: 0, 1, ..., one a value) moves the mean of ``values`` (n,)."""
    sizes = np.bincount(numbers).astype(np.float64)
    totals: Array = np.bincount(numbers, weights=values - values.mean()) * _factors(sizes)
    return totals
