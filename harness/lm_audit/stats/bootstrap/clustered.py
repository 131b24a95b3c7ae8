"""Bootstrap intervals for values that are not independent: one-way clusters, and tables of crossed rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.bootstrap.limits import DRAWS, Resampled, bootstrap_interval, rescaled, resolve_method, t_interval
from lm_audit.stats.bootstrap.resampling import as_float, counts_of, index_batches, leave_one_out, paired_batches
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.effective_number import effective_number
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, cluster_numbers, finite_array, large_exponent
from lm_audit.stats.means.independent import mean_interval
from lm_audit.stats.means.two_way import ENOUGH, FEWEST, two_way_t

MANY = 30
"""Clusters, or of uneven ones as many as they are worth, from which on percentiles of the bootstrap cover as they
should."""

Aggregate = str | Callable[[Any], Any]


@checked
def bootstrap_clustered(
    values: ArrayLike,
    clusters: Sequence[Hashable] | ArrayLike,
    statistic: Aggregate = "mean",
    *,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    method: str | None = None,
    seed: int = 0,
) -> Estimate:
    """The statistic of all values, whole clusters resampled with replacement.

    ``values`` and ``clusters`` (one label a value) have shape (n,). ``statistic`` is "mean" or a callable of the pooled
    values. Clusters are numbered by first appearance. ``method`` is "percentile" or "BCa"; without it a mean has the
    interval of :func:`mean_interval`, anything else t times its standard error over clusters (the larger of jackknife's
    and bootstrap's; degrees of freedom: Kish's effective number of clusters minus 1) where they are worth fewer than 30
    equal ones, and percentiles from there on; below 6 clusters there is none. One cluster gives no interval. ``n``
    counts the values. Raises ``UsageError`` where lengths differ. Sources: Davison and Hinkley 1997, 3.8 (strategy 1);
    Efron and Tibshirani 1993, 11.5.
    """
    chosen = method is not None
    method = resolve_method(method or "percentile")
    array = finite_array(values, "values")
    if len(list(clusters)) != np.size(values):  # type: ignore[arg-type]
        raise UsageError(f"values has {np.size(values)} elements, clusters has {len(list(clusters))} labels")  # type: ignore[arg-type]
    if isinstance(array, str):
        return Estimate.not_estimable(
            array, n=np.size(values), method=f"{method} bootstrap, clustered", confidence=confidence
        )
    if not chosen and isinstance(statistic, str) and statistic == "mean":
        return mean_interval(array, clusters, confidence=confidence, n_resamples=n_resamples, seed=seed)
    labels = cluster_numbers(clusters)
    groups = [array[labels == number] for number in range(labels.max() + 1)]
    with np.errstate(all="ignore"):
        if not chosen and len(groups) > 1 and _worth(groups) < MANY:
            return _by_t(array, groups, _aggregate(statistic), confidence, n_resamples, seed)
        resampled = _resample_clusters(array, groups, _aggregate(statistic), statistic == "mean", n_resamples, seed)
        if len(groups) == 1:
            return _without_interval(resampled.value, len(array), "one cluster: no interval", confidence, 1)
        return bootstrap_interval(resampled, confidence=confidence, method=method)


@checked
def bootstrap_crossed(
    table: ArrayLike,
    statistic: Aggregate = "mean",
    *,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    method: str | None = None,
    seed: int = 0,
) -> Estimate:
    """The statistic of a table, rows and columns resampled independently (two-way or "pigeonhole" bootstrap).

    ``table`` has shape (rows, columns) or (rows, columns, ...): further axes are carried along. ``statistic`` is
    "mean" or a callable of a table of that shape. Only percentile limits exist; unless ``method`` asks for them, a mean
    has those of :func:`lm_audit.stats.means.two_way.two_way_t` with fewer than 8 rows or columns, and below 6 there is
    no interval. One row or column gives none. Source: Owen 2007, "The pigeonhole bootstrap".
    """
    chosen = method is not None
    method = resolve_method(method or "percentile")
    if method != "percentile":
        raise UsageError("the two-way bootstrap has percentile limits only, method must be 'percentile'")
    cells = finite_table(table)
    if isinstance(cells, str):
        return Estimate.not_estimable(cells, n=np.size(table), method="two-way bootstrap", confidence=confidence)
    with np.errstate(all="ignore"):
        value = as_float(_aggregate(statistic)(cells))
        if min(cells.shape[:2]) == 1:
            return _without_interval(
                value, cells.size, f"a {cells.shape[0]} x {cells.shape[1]} table: no interval", confidence, 1
            )
        smallest = min(cells.shape[:2])
        if not chosen and smallest < FEWEST:
            note = f"a {cells.shape[0]} x {cells.shape[1]} table: no interval, {FEWEST} rows and columns give one"
            return _without_interval(value, cells.size, note, confidence, smallest)
        if not chosen and smallest < ENOUGH and isinstance(statistic, str) and cells.ndim == 2:
            return _two_way_t_of(cells, confidence)
        distribution = crossed_distribution(cells, statistic, n_resamples=n_resamples, seed=seed)
        scheme = f"{cells.shape[0]} rows x {cells.shape[1]} columns"
        return bootstrap_interval(
            Resampled(value, distribution, cells.size, scheme, units=min(cells.shape[:2]), fewest=FEWEST_CLUSTERS),
            confidence=confidence,
            method=method,
        )


@checked
def two_way_mean(table: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """The mean of a (rows, columns) table with its two-way t interval, from 6 rows and columns on.

    The variance is that of the row means plus that of the column means minus what both hold twice
    (:func:`~lm_audit.stats.means.two_way.two_way_variance`). NaN or infinity: no value.
    """
    cells = finite_table(table, "rows and columns")
    if isinstance(cells, str):
        return Estimate.not_estimable(cells, n=np.size(table), method="two-way t", confidence=confidence)
    return _two_way_t_of(cells, confidence)


def _two_way_t_of(cells: Array, confidence: float) -> Estimate:
    exponent = large_exponent(cells)
    return rescaled(two_way_t(np.ldexp(cells, -exponent), confidence)[0], exponent)


def crossed_distribution(cells: Array, statistic: Aggregate, *, n_resamples: int, seed: int) -> Array:
    """The statistic of each two-way resample, shape (n_resamples,); row draws come before column draws."""
    function, rows, columns = _aggregate(statistic), cells.shape[0], cells.shape[1]
    pieces = []
    for row_draws, column_draws in paired_batches(seed, rows, columns, n_resamples):
        if statistic == "mean" and cells.ndim == 2:
            weighted = (counts_of(row_draws, rows) @ cells) * counts_of(column_draws, columns)
            pieces.append(weighted.sum(axis=1) / cells.size)
        else:
            pieces.append(_each_table(function, cells, row_draws, column_draws))
    return np.concatenate(pieces)


TABLE_METHODS = ("bootstrap", "t")
"""What a mean of a table may be tested by."""

Axes = Literal["rows and columns", "groups, rows and columns"]


def finite_table(table: ArrayLike, axes: Axes | None = None) -> Array | str:
    """A table of these ``axes`` (or of two and more) as float64, or why it cannot be used, with the first bad cell."""
    cells = np.asarray(table, dtype=np.float64)
    if cells.size == 0:
        return "the table is empty"
    if cells.ndim < 2 or (axes is not None and cells.ndim != 2 + axes.count(",")):
        raise UsageError(f"table has shape {cells.shape}; {axes or 'rows and columns'} are needed")
    bad = np.argwhere(~np.isfinite(cells))
    if len(bad):
        return f"the table holds {cells[tuple(bad[0])]} at {tuple(map(int, bad[0]))} ({len(bad)} cells not finite)"
    return cells


def _resample_clusters(
    array: Array, groups: list[Array], function: Callable[[Any], Any], mean: bool, n_resamples: int, seed: int
) -> Resampled:
    draws = index_batches(np.random.default_rng(seed), len(groups), n_resamples)
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    if mean:
        sums = np.array([group.sum() for group in groups])
        distribution = np.concatenate([sums[rows].sum(axis=1) / sizes[rows].sum(axis=1) for rows in draws])
        without = (sums.sum() - sums) / np.maximum(sizes.sum() - sizes, 1)
        value, counts = float(sums.sum() / sizes.sum()), {"units": len(groups), "fewest": FEWEST_CLUSTERS}
        return Resampled(value, distribution, len(array), _scheme(groups), lambda: [without], **counts)
    answers = [as_float(function(np.concatenate([groups[i] for i in row]))) for rows in draws for row in rows]
    numbers = np.arange(len(groups), dtype=np.float64)
    return Resampled(
        as_float(function(array)),
        np.array(answers),
        len(array),
        _scheme(groups),
        lambda: [leave_one_out(lambda kept: function(np.concatenate([groups[int(i)] for i in kept])), numbers)],
        units=len(groups),
        fewest=FEWEST_CLUSTERS,
    )


def _by_t(
    array: Array, groups: list[Array], function: Callable[[Any], Any], confidence: float, n_resamples: int, seed: int
) -> Estimate:
    """Student's limits; clusters of uneven size tell of the spread as fewer even ones do."""
    count = len(groups)
    if count < FEWEST:
        note = f"{count} clusters give no interval, {FEWEST} do"
        return _without_interval(as_float(function(array)), len(array), note, confidence, count)
    resampled = _resample_clusters(array, groups, function, False, min(n_resamples, DRAWS), seed)
    return t_interval(resampled, confidence=confidence, freedom=max(1.0, _worth(groups) - 1))


def _worth(groups: list[Array]) -> float:
    """How many clusters of one size they are worth (Kish's effective number)."""
    return effective_number(np.array([len(group) for group in groups], dtype=np.float64))


def _scheme(groups: list[Array]) -> str:
    return f"{len(groups)} clusters resampled"


def _aggregate(statistic: Aggregate) -> Callable[[Any], Any]:
    if not isinstance(statistic, str):
        return statistic
    if statistic != "mean":
        raise UsageError(f"statistic is {statistic!r}, must be a callable or 'mean'")
    return np.mean


def _each_table(function: Callable[[Any], Any], cells: Array, rows: Integers, columns: Integers) -> Array:
    answers = [as_float(function(cells[np.ix_(r, c)])) for r, c in zip(rows, columns, strict=True)]
    return np.array(answers, dtype=np.float64)


def _without_interval(value: float, n: int, note: str, confidence: float, units: int) -> Estimate:
    if not np.isfinite(value):
        return Estimate.not_estimable("the statistic is not a finite number on these data", n=n, confidence=confidence)
    return Estimate(value, n=n, confidence=confidence, method="bootstrap", note=note, units=units)
