"""How far from its value an interval should reach: from rows alone, by other formulas than those that made it.

A second opinion on reported intervals. Nothing here calls ``lm_audit.stats``: where an interval was computed exactly or
by simulation stands a moment match, where it was bootstrapped a bootstrap of its own, else a jackknife over clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lm_audit.sources.clusters import clusterings
from lm_audit.sources.evaluation import gathered, statistic_of
from lm_audit.sources.record import MetricSource
from lm_audit.sources.spread import spread_of
from lm_audit.sources.statistics import STATISTICS, Evaluate
from lm_audit.sources.units import Floats, Integers, Mask, RowTable, Units
from lm_audit.stats.estimate import Estimate

DRAWS = 1999
"""Of a bootstrap."""

UNEVEN = 1.8
"""Clusters of several answers may count for so much less than as one answer each."""

LONGER_TAIL = 15.0
"""Over n, by how much of itself an interval grows towards the longer tail of few values for each unit of skewness: what
the intervals say that they do, and here is told by another skewness of other deviations."""

SPARED = 0.25
"""So many times the skewness that normal values have by chance does not count in a bootstrap-t."""

SLACK = 0.006
"""Tail by which the quantile of a bootstrap-t may lie elsewhere in another one: both have their own error."""


@dataclass(frozen=True)
class Reach:
    """The larger of the distances from a value to its limits: between ``least`` and ``most``, in the metric's unit."""

    least: float
    most: float

    @classmethod
    def of(cls, *reaches: float) -> Reach | None:
        """From the shortest to the longest of them; ``None`` where one is no number or 0."""
        known = [float(one) for one in reaches]
        return cls(min(known), max(known)) if all(math.isfinite(one) and one > 0 for one in known) else None


def reported_reach(estimate: Estimate) -> float | None:
    """The larger distance from the value to a limit; ``None`` without an interval."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    return max(estimate.value - estimate.low, estimate.high - estimate.value)


def reach_of(estimate: Estimate, source: MetricSource, table: RowTable, limits: tuple[float, float]) -> Reach | None:
    """How far the interval of ``estimate`` should reach; ``None`` where these rows and this statistic do not tell.

    ``limits`` are those that the metric cannot leave, infinite where there are none. The method that the estimate names
    says which kind of interval it should be.
    """
    tail = (1 - (estimate.confidence or 0.95)) / 2
    if source.statistic not in STATISTICS:
        return None
    units = gathered(source, table)
    if not len(units):
        return None
    if source.statistic == "mean":
        weights = None if "weight" not in source.options else units.numbers(source.options["weight"])
        if weights is not None and np.ptp(weights) > 1e-9 * np.abs(weights).max():
            return None
        found = _of_mean(estimate.method, source, units, limits, tail)
    elif source.statistic == "auc":
        found = _of_auc(source, units, tail)
    elif source.statistic == "average_precision":
        found = _of_average_precision(source, units, tail)
    elif source.statistic == "tpr_at_fpr":
        found = _of_tpr(source, units, tail)
    elif source.statistic == "exposure":
        found = _of_exposure(source, units, tail)
    else:
        return None
    return None if found is None else Reach(abs(source.scale) * found.least, abs(source.scale) * found.most)


def _of_mean(method: str, source: MetricSource, units: Units, limits: tuple[float, float], tail: float) -> Reach | None:
    values, found = units.values, clusterings(source, units)
    beyond_files = "where wider" in method
    if not beyond_files and ("Clopper-Pearson" in method or "Gaffke" in method):
        if len(found) > 1:
            return None
        edges = sorted((edge - source.offset) / source.scale for edge in limits)
        alone = _bounded(values, edges[0], edges[1], tail)
        if not source.clusters or alone is None:
            return alone
        sizes = np.bincount(found[0].codes)
        whole = _bounded(np.bincount(found[0].codes, weights=values) / sizes, edges[0], edges[1], tail)
        if whole is None or (not np.ptp(sizes) and not np.ptp(values)):
            return whole
        # As sure as all answers by themselves at the most; where clusters are uneven, less than as one answer each, and
        # the less where few of them hold most.
        longer = max(_growth(_cluster_deviations(values, found[0].codes))) ** 0.5
        uneven = 1.0 if len(sizes) == len(values) else UNEVEN
        return Reach.of(alone.least, min(uneven * longer * whole.most, edges[1] - edges[0]))
    if "conditional on these" in method:
        values = _within_files(units)
    if len(np.unique(values)) < 2:
        return None
    if "bootstrap-t" in method:
        return _bootstrap_t(values, tail, symmetric="symmetric" in method) if not source.clusters else None
    spread = spread_of(_mean_of(values), found)
    if not spread.variance > 0:
        return None
    reach = _student(spread.df, tail) * math.sqrt(spread.variance)
    if "mean, t" in method and len(found) < 2:
        codes = found[0].codes if found else np.arange(len(values))
        means = np.bincount(codes, weights=values) / np.bincount(codes)
        reach *= max(*_growth(_cluster_deviations(values, codes)), *_growth(means))
    # How far files that were not drawn may lie from those at hand is for the audit to say.
    return Reach(reach, math.inf) if beyond_files else Reach.of(reach)


def _growth(values: Floats, spared: float = 0.0) -> tuple[float, float]:
    """The factors of the parts below and above the mean: what lies far out on the longer side was not drawn."""
    from scipy.stats import skew

    if not np.ptp(values):
        return 1.0, 1.0
    counted, n = float(skew(values)), len(values)
    chance = spared * math.sqrt(6 / n)
    return 1 + LONGER_TAIL / n * max(0.0, -counted - chance), 1 + LONGER_TAIL / n * max(0.0, counted - chance)


def _cluster_deviations(values: Floats, codes: Integers) -> Floats:
    """By how much each cluster moves the mean, too small by its own share of it and made up for that."""
    sizes = np.bincount(codes)
    away: Floats = np.bincount(codes, weights=values - values.mean()).astype(np.float64)
    return np.asarray(away / np.sqrt(1 - sizes / len(values))) if len(sizes) > 1 else away


def _mean_of(values: Floats) -> Evaluate:
    return lambda weights: np.asarray(weights @ values / weights.sum(axis=1))


def _within_files(units: Units) -> Floats:
    """The values with the differences between files taken out, and as much wider as their means took freedom."""
    files = [str(file) for file in units.column("file")]
    names = sorted(set(files))
    numbers, n = np.array([names.index(file) for file in files]), len(files)
    if len(names) == 1 or n - len(names) < 7:
        return units.values
    means = np.bincount(numbers, weights=units.values) / np.bincount(numbers)
    wider = math.sqrt((n - 1) / (n - len(names)))
    return np.asarray(units.values.mean() + wider * (units.values - means[numbers]))


def _bounded(values: Floats, low: float, high: float, tail: float) -> Reach | None:
    """Of values in [``low``, ``high``]: what their mean is under Dirichlet weights on them and one end of the range, by
    the Beta distribution of as large a mean and variance. Where all lie at the ends this is Clopper and Pearson's.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    mean = float(values.mean())
    below = mean - _dirichlet_quantile(np.r_[low, values], tail)
    above = _dirichlet_quantile(np.r_[values, high], 1 - tail) - mean
    return Reach.of(max(below, above))


def _dirichlet_quantile(values: Floats, share: float) -> float:
    from scipy.special import betaincinv

    bottom, width = float(values.min()), float(np.ptp(values))
    if not width:
        return bottom
    scaled = (values - bottom) / width
    mean = float(scaled.mean())
    variance = float(scaled.var()) / (len(values) + 1)
    count = mean * (1 - mean) / variance - 1
    return bottom + width * float(betaincinv(mean * count, (1 - mean) * count, share))


def _bootstrap_t(values: Floats, tail: float, *, symmetric: bool) -> Reach | None:
    """The quantiles of the t statistic of resamples, longer towards the values' longer tail; which end is longer is for
    the values to say, and no end of one that is not symmetric is shorter than Student's."""
    rng, n = np.random.default_rng([len(values), 2]), len(values)
    drawn = values[rng.integers(n, size=(DRAWS, n))]
    errors, means = drawn.std(axis=1, ddof=1), drawn.mean(axis=1) - values.mean()
    flat = errors <= 1e-12 * np.abs(values).max()
    t = np.where(flat, np.copysign(np.inf, means), means / np.where(flat, 1.0, errors) * math.sqrt(n))
    error = float(values.std(ddof=1)) / math.sqrt(n)
    (down, up), reaches = _growth(values, SPARED), []
    for share in (tail + SLACK, tail - SLACK):
        if symmetric:
            reaches.append(error * max(down, up) * float(np.quantile(np.abs(t), 1 - 2 * share, method="higher")))
        else:
            ends, even = np.quantile(t, (share, 1 - share), method="higher"), _student(n - 1, tail)
            reaches.append(error * max(up * max(even, -float(ends[0])), down * max(even, float(ends[1]))))
    return Reach.of(*reaches)


def _of_auc(source: MetricSource, units: Units, tail: float) -> Reach | None:
    """Wilson's limits for a share with the AUC's variance: the mean of the jackknife's and of that which exponential
    scores have, or the jackknife's where that is larger. Groups that are wholly apart are as sure as the smaller one is
    large."""
    ends = _auc_ends(source, units, tail)
    return None if ends is None else Reach.of(max(ends.value - ends.low, ends.high - ends.value))


@dataclass(frozen=True)
class _Ends:
    """A value and its limits."""

    low: float
    value: float
    high: float


def _auc_ends(source: MetricSource, units: Units, tail: float) -> _Ends | None:
    evaluate, members, twins = _ranked(source, units)
    value, m, n = float(evaluate(np.ones((1, len(units))))[0]), int(members.sum()), int(twins.sum())
    smaller = min(m, n)
    if smaller < 2:
        return None
    spread = spread_of(evaluate, clusterings(source, units))
    if not spread.variance > 0 or not 0 < value < 1:
        return _wilson(value, smaller, _student(smaller - 1, tail))
    near = float(np.clip(value, 0.25 / smaller, 1 - 0.25 / smaller))
    # The scores of either side may be the more spread.
    exponential = max(_exponential_variance(near, m, n), _exponential_variance(near, n, m))
    variance = max(spread.variance, (spread.variance + exponential) / 2)
    count = max(1.0, near * (1 - near) / variance)
    return _wilson(value, count, _student(max(1.0, spread.df), tail))


def _exponential_variance(auc: float, m: int, n: int) -> float:
    """The variance of the AUC of m exponential scores against n whose mean is ``odds`` times smaller."""
    a = max(auc, 1 - auc)
    odds = a / (1 - a)
    one_twin = odds / (2 + odds) - a**2
    one_member = 2 * odds**2 / ((1 + odds) * (1 + 2 * odds)) - a**2
    return (a / (1 + odds) + (m - 1) * one_twin + (n - 1) * one_member) / (m * n)


def _wilson(value: float, count: float, z: float) -> _Ends:
    centre = (value + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(value * (1 - value) / count + (z / (2 * count)) ** 2) / (1 + z**2 / count)
    return _Ends(min(value, centre - half), value, max(value, centre + half))


def _of_average_precision(source: MetricSource, units: Units, tail: float) -> Reach | None:
    """Both sides resampled: the longer of percentiles and of Student's limits on the logit scale; no nearer than what
    the AUC's limits leave possible, members moved on by so many places among all."""
    from scipy.special import expit, logit

    evaluate, members, twins = _ranked(source, units)
    value, m = float(evaluate(np.ones((1, len(units))))[0]), int(members.sum())
    drawn = evaluate(_resampled(members, twins))
    edge = 0.25 / m
    half = _student(m - 1, tail) * float(logit(np.clip(drawn, edge / 10, 1 - edge)).std(ddof=1))
    centre = float(logit(np.clip(value, edge / 10, 1 - edge)))
    ends = [*np.quantile(drawn, (tail, 1 - tail)), expit(centre - half), expit(centre + half)]
    area = _auc_ends(replace(source, statistic="auc"), units, tail)
    if area is not None:
        scores = (1.0 if source.options.get("higher", True) else -1.0) * units.values
        first = _dirichlet_quantile(np.r_[0.0, scores[members] > scores[twins].max()], tail)
        ends.append(max(first, _moved_precision(scores[members], scores[twins], area.low)))
        ends.append(_moved_precision(scores[members], scores[twins], area.high))
    return Reach.of(max(abs(end - value) for end in ends))


def _moved_precision(members: Floats, twins: Floats, area: float) -> float:
    """The average precision of members that were moved on until their AUC is ``area``, on logistic scores of all
    ranks."""
    from scipy.special import logit

    both = np.sort(np.r_[members, twins])
    sides = [
        (np.searchsorted(both, some, "left") + np.searchsorted(both, some, "right")) / 2 for some in (members, twins)
    ]
    own, others = (logit((places + 0.5) / (len(both) + 1)) for places in sides)
    # Between which two of all distances the AUC passes its limit is a matter of order alone.
    distances = np.sort((others[None, :] - own[:, None]).ravel())
    at = distances[min(len(distances) - 1, int(np.clip(area, 0.0, 1.0) * len(distances)))] + 1e-9
    ahead = (others[None, :] >= own[:, None] + at).sum(axis=1)
    reached = (own[None, :] >= own[:, None]).sum(axis=1)
    return float((reached / (reached + ahead)).mean())


def _resampled(*sides: Mask, draws: int = 499) -> Floats:
    """Weights of units, those of each side drawn anew with replacement."""
    rng, weights = np.random.default_rng([len(sides[0]), 3]), np.zeros((draws, len(sides[0])))
    for side in sides:
        count = int(side.sum())
        weights[:, side] = rng.multinomial(count, np.full(count, 1 / count), size=draws)
    return weights


def _of_tpr(source: MetricSource, units: Units, tail: float) -> Reach | None:
    """Of the share of members above the threshold as it is, and where twins may pass it: of four or more with both
    sides resampled, of fewer, and where the threshold is tied, above those between which that of all twins lies.
    """
    from scipy.special import betainc

    evaluate, members, twins = _ranked(source, units)
    scores = (1.0 if source.options.get("higher", True) else -1.0) * units.values
    n, fpr = int(twins.sum()), float(source.options["fpr"])
    ordered = np.sort(scores[twins])[::-1]
    allowed = math.floor(fpr * n + 1e-9)
    value = float(evaluate(np.ones((1, len(units))))[0])

    def low(threshold: float) -> float:
        return _dirichlet_quantile(np.r_[0.0, scores[members] > threshold], tail)

    def high(threshold: float) -> float:
        return _dirichlet_quantile(np.r_[scores[members] > threshold, 1.0], 1 - tail)

    at = ordered[min(allowed, n - 1)]
    reach = max(value - low(at), high(at) - value)
    tied = 0 < allowed < n - 1 and (ordered[allowed - 1 : allowed + 2] == at).sum() > 1
    if allowed >= 4 and not tied:
        ends = np.quantile(evaluate(_resampled(members, twins)), (tail, 1 - tail))
        return Reach.of(max(reach, value - ends[0], ends[1] - value))
    if not allowed:
        return Reach.of(reach)
    # The share of all twins above the k-th largest of n is distributed as Beta(k, n - k + 1).
    places = np.arange(1, n + 1)
    below = betainc(places, n - places + 1, fpr)
    last = min(int((below >= 0.05).sum()), n - 1)
    first = int((below > 0.95).sum())
    top = min(20, n - 1)
    beyond = float((ordered[:top] - ordered[top]).mean()) * max(0.0, math.log(-math.log(0.05) / (fpr * n)))
    steps = ordered[:top] - ordered[1 : top + 1]
    if len(set(ordered[: top + 1])) <= top:
        # Of scores that are tied the next higher one may be a whole step above.
        beyond = max(beyond, float(steps.max()))
    upper = float(ordered[first - 1]) if first else float(ordered[0]) + beyond
    return Reach.of(max(value - low(upper), high(float(ordered[last])) - value))


def _of_exposure(source: MetricSource, units: Units, tail: float) -> Reach | None:
    """The members' side as of bounded values under their cap, the twins' by a jackknife; both in squares."""
    evaluate, members, twins = _ranked(source, units)
    members = members & units.mask(source.options.get("tier", {}))
    n = int(twins.sum())
    if n < 2 or int(members.sum()) < 2:
        return None
    scores = (1.0 if source.options.get("higher", True) else -1.0) * units.values
    ahead = (scores[twins][None, :] >= scores[members][:, None]).sum(axis=1)
    bits = math.log2(n + 1) - np.log2(1 + ahead)
    own = _bounded(bits, 0.0, math.log2(n + 1), tail)
    # Each twin left out in turn; that one fewer sets another cap is the same for all of them.
    left = np.ones((n, len(units)))
    left[np.arange(n), np.flatnonzero(twins)] = 0.0
    moved = evaluate(left)
    shared = _student(n - 1, tail) * math.sqrt((n - 1) / n * float(((moved - moved.mean()) ** 2).sum()))
    return None if own is None else Reach.of(math.hypot(own.least, shared))


def _ranked(source: MetricSource, units: Units) -> tuple[Evaluate, Mask, Mask]:
    options = source.options
    evaluate = statistic_of(source)(units, options)
    return evaluate, units.mask(options["members"]), units.mask(options["controls"])


def _student(df: float, tail: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, 1 - tail))
