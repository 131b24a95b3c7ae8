"""The standard error of any statistic, from leaving out or redrawing whole clusters, and its degrees of freedom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lm_audit.sources.clusters import Clustering
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import Floats, Units
from lm_audit.stats.degrees_of_freedom import degrees_of_freedom
from lm_audit.stats.means.mean_difference import untold
from lm_audit.stats.means.skewed import SPARED, growth

ROUGH = frozenset({"quantile", "median", "max_min", "tpr_at_fpr", "exposure"})
"""Statistics that do not change smoothly with their units: the jackknife fails them, the bootstrap does not."""

DRAWS = 799
"""Bootstrap draws for a standard error, which needs far fewer than a percentile."""

SWEEPS = 20
"""Times that rows' and columns' means are taken out of a table with cells missing."""

BATCH = 2**21
"""Weights held at a time."""


@dataclass(frozen=True)
class Spread:
    """A variance and the degrees of freedom of its estimate; ``clusters`` is the number of independent ones.

    ``skew`` is the skewness of the clusters' parts, 0 where it is not known. ``reach`` is by how many times a t an
    interval reaches down and up, and ``hidden`` by how much further yet.
    """

    variance: float
    df: float
    clusters: int
    skew: float = 0.0
    reach: tuple[float, float] = (1.0, 1.0)
    hidden: float = 0.0


def spread_of(
    statistic: Callable[[Floats], Floats], clusterings: Sequence[Clustering], *, rough: bool = False, seed: int = 0
) -> Spread:
    """The variance of ``statistic``, a function of unit weights (B, n) to (B,).

    Of crossed factors: rows plus columns minus what both hold twice (Cameron, Gelbach and Miller 2011), of cells what
    is left around rows and columns (:func:`_around_both`); but no less than the larger of the first two. Degrees of
    freedom are those of the sum that is used (:func:`~lm_audit.stats.degrees_of_freedom.degrees_of_freedom`); the
    jackknife by Efron and Tibshirani 1993, 11.5.
    """
    find = _bootstrap if rough else _jackknife
    rows, *others = (find(statistic, clustering, seed) for clustering in clusterings[:2])
    if not others:
        return rows
    columns = others[0]
    twice = find(statistic, clusterings[2], seed).variance if rough else _around_both(statistic, clusterings)
    variance = max(rows.variance + columns.variance - twice, rows.variance, columns.variance)
    df = degrees_of_freedom([(part.variance, part.df) for part in (rows, columns)], variance)
    return Spread(variance, df, min(rows.clusters, columns.clusters))


def difference_of(first: Spread, second: Spread, *, hidden: float = 0.0) -> Spread:
    """Variance of a difference of independent statistics, with Welch's degrees of freedom to the second order.

    Where one run spreads more, what few values hide of its longer tail is in no other's: Welch's t rejects 6 to 11 % of
    exponential samples of 8 to 50 at two and three times the spread. The shape is taken from both runs together, since
    the few values of one alone tell too little of it; where both spread alike it cancels.
    """
    runs, variance = (first, second), first.variance + second.variance
    df, fewest = degrees_of_freedom((run.variance, run.df) for run in runs), min(run.clusters for run in runs)
    if not 0 < variance < np.inf:
        return Spread(variance, df, fewest, hidden=hidden)
    n = sum(run.clusters for run in runs)
    shape = sum(run.clusters * run.skew for run in runs) / n
    own = [(run.variance / variance) ** 1.5 / run.clusters**0.5 for run in runs]
    reach = growth(shape * (own[1] - own[0]) * n**0.5, n, spared=SPARED)
    return Spread(variance, df, fewest, reach=reach, hidden=hidden)


def hidden_in(source: MetricSource, a: Units, b: Units) -> float:
    """What independent values that are nearly all one and the same may hide of the difference of their means."""
    if source.statistic != "mean" or source.clusters or "weight" in source.options:
        return 0.0
    both = np.concatenate([a.values, b.values])
    # Runs of two different values have one law where their means are the same, and a test that is exact then.
    return max(untold(units.values, both) for units in (a, b)) if len(np.unique(both)) > 2 else 0.0


def _around_both(statistic: Callable[[Floats], Floats], clusterings: Sequence[Clustering]) -> float:
    """The variance of the mean of what cells add to their row and their column, 0 where too few tell it.

    The variance of the cells as they are holds rows and columns too, and what is taken off would be too much.
    """
    rows, columns, cells = clusterings
    parts = -(cells.count - 1) * _left_out(statistic, cells)
    places = [np.zeros(cells.count, dtype=np.int64) for _ in "rc"]
    for place, factor in zip(places, (rows, columns), strict=True):
        place[cells.codes] = factor.codes
    freedom = cells.count - rows.count - columns.count + 1
    if freedom < 1 or not np.isfinite(parts).all():
        return 0.0
    rest = parts - parts.mean()
    # One sweep leaves nothing of rows and columns in a full table; with cells missing a few do.
    for _ in range(SWEEPS):
        for place, factor in zip(places, (rows, columns), strict=True):
            here = np.bincount(place, minlength=factor.count)
            rest = rest - (np.bincount(place, weights=rest, minlength=factor.count) / np.maximum(here, 1))[place]
    return float((rest**2).sum()) / freedom / cells.count


def _left_out(statistic: Callable[[Floats], Floats], clustering: Clustering) -> Floats:
    """The statistic without each cluster in turn."""
    count, pieces = clustering.count, []
    step = max(1, BATCH // max(1, len(clustering.codes)))
    for start in range(0, count, step):
        kept = np.ones((min(step, count - start), count))
        kept[np.arange(len(kept)), start + np.arange(len(kept))] = 0.0
        pieces.append(statistic(clustering.spread(kept)))
    return np.concatenate(pieces)


def _jackknife(statistic: Callable[[Floats], Floats], clustering: Clustering, seed: int) -> Spread:
    count, found = clustering.count, _left_out(statistic, clustering)
    parts: list[Floats] = []
    for stratum in np.unique(clustering.strata):
        own = found[clustering.strata == stratum]
        if len(own) < 2 or not np.isfinite(own).all():
            return Spread(np.nan, np.nan, count)
        parts.append((own.mean() - own) * ((len(own) - 1) / len(own)) ** 0.5)
    squares = [(float((part**2).sum()), len(part) - 1) for part in parts]
    variance, n = sum(square for square, _ in squares), _smallest(clustering)
    skew = 0.0
    if n > 2 and 0 < variance < np.inf:
        # The adjusted Fisher-Pearson one of the clusters: that of a small sample as it is would be too small.
        third = sum(float(((part / variance**0.5) ** 3).sum()) for part in parts)
        skew = n * (n - 1) ** 0.5 / (n - 2) * third
    return Spread(variance, degrees_of_freedom(squares), n, skew)


def _bootstrap(statistic: Callable[[Floats], Floats], clustering: Clustering, seed: int) -> Spread:
    rng = np.random.default_rng(seed)
    sizes = {stratum: np.flatnonzero(clustering.strata == stratum) for stratum in np.unique(clustering.strata)}
    if min(map(len, sizes.values())) < 2:
        return Spread(np.nan, np.nan, clustering.count)
    pieces = []
    step = max(1, BATCH // max(1, len(clustering.codes)))
    for start in range(0, DRAWS, step):
        counts = np.zeros((min(step, DRAWS - start), clustering.count))
        for members in sizes.values():
            counts[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), len(counts))
        pieces.append(statistic(clustering.spread(counts)))
    found = np.concatenate(pieces)
    found = found[np.isfinite(found)]
    smallest = _smallest(clustering)
    # The bootstrap's variance divides by n where n - 1 is due.
    variance = float(found.var()) * smallest / (smallest - 1) if len(found) > DRAWS / 2 else np.nan
    return Spread(variance, float(smallest - 1), smallest)


def _smallest(clustering: Clustering) -> int:
    return int(np.unique(clustering.strata, return_counts=True)[1].min())
