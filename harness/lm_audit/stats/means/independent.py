"""The interval of a mean that covers what it says also with few values, skewed ones, or few clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.bootstrap.resampling import counts_of, index_batches
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST, FEWEST_CLUSTERS
from lm_audit.stats.effective_number import effective_number
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, cluster_numbers, finite_array, rounding
from lm_audit.stats.means.cluster_robust import clustered_mean
from lm_audit.stats.means.skewed import SPARED, growth, remark, skewness
from lm_audit.stats.shares.clustered_share import share

METHOD = "mean, symmetric bootstrap-t"

UNEVEN = 0.5
"""Clusters that are worth fewer equal ones than this share of their number (Kish) are so few that resamples, most of
which lack the largest or hold it twice, tell too little: of 6 to 25 of which two hold 90 % of the values, or one 70 %,
the bootstrap-t alone covers 76 to 92 %."""


@checked
def mean_interval(
    values: ArrayLike,
    clusters: Sequence[Hashable] | ArrayLike | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """The mean of all values with an interval; ``clusters`` (one label a value) are resampled whole.

    ``values`` has shape (n,). The mean over its standard error is compared with the same of resamples (Efron 1979; Hall
    1992, symmetric form); of clusters it is the ratio's. Towards the longer tail of the units the interval reaches
    further (:mod:`lm_audit.stats.means.skewed`), and where few clusters hold most values it is no nearer than
    :func:`clustered_mean`'s. Values that are all at the ends of ``bounds`` (0 and 1 where
    none are given) are a share and have the limits of :func:`lm_audit.stats.share`. Fewer than 8 values or 6 clusters,
    and values that never differ, have no interval.
    ``benchmarks/coverage_simulation.py`` measures the coverage. Raises ``UsageError`` where lengths differ.
    """
    array = finite_array(values, "values")
    n = int(np.size(values))
    if isinstance(array, str):
        return Estimate.not_estimable(array, n=n, method=METHOD, confidence=confidence)
    labels = _numbers(clusters, n)
    count = n if labels is None else int(labels.max()) + 1
    what, fewest = ("values", FEWEST) if labels is None else ("clusters", FEWEST_CLUSTERS)
    method = METHOD if labels is None else f"{METHOD}, {count} clusters resampled"
    exponent = math.frexp(max(float(np.abs(array).max()), 1e-300))[1]
    scaled = np.ldexp(array, -exponent)
    value = float(np.ldexp(scaled[0] if np.ptp(scaled) == 0 else scaled.mean(), exponent))
    bare = Estimate(value, n=n, confidence=confidence, method=method, units=count, fewest=fewest)
    low, high = bounds or (0.0, 1.0)
    if np.isin(array, (low, high)).all():
        return _share((array == high).astype(np.float64), clusters, (low, high), confidence)
    if count < fewest:
        return replace(bare, note=f"{count} {what} give no interval, {fewest} do")
    sums, sizes = (scaled, np.ones(n)) if labels is None else _by_cluster(scaled, labels)
    error = float(_ratio_and_error(np.ones((1, count)), sums, sizes)[1][0])
    if error <= rounding(scaled):
        return replace(bare, note=f"the {what} do not differ: no interval")
    reach = _quantile(sums, sizes, error, confidence, n_resamples, seed)
    if not math.isfinite(reach):
        return replace(bare, note=f"too few {what} differ from the others: a resample often has no spread, no interval")
    skew = skewness(sums - float(scaled.mean()) * sizes)
    down, up = growth(skew, count, spared=SPARED)
    with np.errstate(over="ignore"):
        ends = [float(np.ldexp(scaled.mean() + part * reach * error, exponent)) for part in (-down, up)]
    if not all(map(math.isfinite, ends)):
        return Estimate.not_estimable("the result exceeds the range of floats", n=n, method=method)
    bare = replace(bare, method=f"{method}, B={n_resamples}", note=remark(skew, count))
    found = replace(bare, low=min(ends[0], value), high=max(ends[1], value))
    if labels is None or effective_number(sizes) >= UNEVEN * count:
        return found
    return _no_nearer(found, clustered_mean(array, labels, confidence=confidence))


def _no_nearer(found: Estimate, robust: Estimate) -> Estimate:
    """The interval with its ends no nearer than those of a t whose degrees of freedom know the clusters' sizes."""
    assert found.low is not None and found.high is not None
    if robust.low is None or robust.high is None:
        return found
    method = f"{found.method}; no nearer than CR2's t"
    return replace(found, low=min(found.low, robust.low), high=max(found.high, robust.high), method=method)


def _numbers(
    clusters: Sequence[Hashable] | ArrayLike | None, n: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    if clusters is None:
        return None
    labels = cluster_numbers(clusters)
    if len(labels) != n:
        raise UsageError(f"values has {n} elements, clusters has {len(labels)} labels")
    return labels


def _share(
    yes: Array, clusters: Sequence[Hashable] | ArrayLike | None, bounds: tuple[float, float], confidence: float
) -> Estimate:
    found, (bottom, top) = share(yes, clusters, confidence=confidence), bounds

    def back(x: float | None) -> float | None:
        return None if x is None else bottom + (top - bottom) * x

    return replace(found, value=back(found.value), low=back(found.low), high=back(found.high), unit=None)


def _by_cluster(values: Array, labels: Integers) -> tuple[Array, Array]:
    sums: Array = np.bincount(labels, weights=values).astype(np.float64)
    sizes: Array = np.bincount(labels).astype(np.float64)
    return sums, sizes


def _ratio_and_error(counts: Array, sums: Array, sizes: Array) -> tuple[Array, Array]:
    """The mean of all values and its standard error for counts of clusters, shape (B, clusters)."""
    total, drawn = counts @ sizes, counts.sum(axis=1)
    mean = (counts @ sums) / total
    squares = counts @ sums**2 - 2 * mean * (counts @ (sums * sizes)) + mean**2 * (counts @ sizes**2)
    return mean, np.sqrt(np.maximum(squares, 0.0) * drawn / (drawn - 1)) / total


def _quantile(sums: Array, sizes: Array, error: float, confidence: float, n_resamples: int, seed: int) -> float:
    """The quantile of |resampled mean - mean| over its own standard error."""
    # Without the common offset no digits are lost in the sums of squares.
    centre = float(sums.sum() / sizes.sum())
    sums = sums - centre * sizes
    pieces = []
    for rows in index_batches(np.random.default_rng(seed), len(sums), n_resamples):
        mean, spread = _ratio_and_error(counts_of(rows, len(sums)), sums, sizes)
        flat = spread <= 1e-9 * error
        with np.errstate(divide="ignore", invalid="ignore"):
            pivots = np.abs(mean) / np.where(flat, 0.0, spread)
        pieces.append(np.where(flat & (np.abs(mean) <= 1e-9 * error), 0.0, pivots))
    ordered = np.sort(np.concatenate(pieces))
    rank = min(len(ordered), math.ceil(confidence * (len(ordered) + 1))) - 1
    return float(ordered[rank])
