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
from lm_audit.sources.opinion.chance_levels import precision_by_chance
from lm_audit.sources.opinion.shares import (
    LONGER_TAIL,
    Ends,
    cluster_deviations,
    difference_ends,
    grown,
    share_ends,
    widest_ends,
)
from lm_audit.sources.record import MetricSource
from lm_audit.sources.spread import spread_of
from lm_audit.sources.statistics import STATISTICS, Evaluate
from lm_audit.sources.units import Floats, Integers, Mask, RowTable, Units
from lm_audit.stats.estimate import Estimate

DRAWS = 1999
"""Of a bootstrap."""

SPARED = 0.25
"""So many times the skewness that normal values have by chance does not count in a bootstrap-t."""

MISSING = 2.4
"""Of two groups, of which the smaller has n values, so many of them are as good as missing in each tail."""

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
    if "Clopper-Pearson" in estimate.method and "where wider" not in estimate.method:
        ends = _of_shares(source, units, limits, tail)
        found = None if ends is None else Reach.of(max(ends))
    elif source.statistic == "mean":
        weights = None if "weight" not in source.options else units.numbers(source.options["weight"])
        if weights is not None and np.ptp(weights) > 1e-9 * np.abs(weights).max():
            return None
        found = _of_mean(estimate.method, source, units, limits, tail)
    elif source.statistic == "difference":
        found = _of_difference(source, units, tail) if "bootstrap-t" in estimate.method else None
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
    if found is None:
        return None
    scale, cut = abs(source.scale), _cut_off(estimate, limits)
    return Reach(min(scale * found.least, cut), scale * found.most)


def _cut_off(estimate: Estimate, limits: tuple[float, float]) -> float:
    """How far an interval reaches that ends where the metric does: it would have gone on. Infinite of any other."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return math.inf
    # A value that lies there itself has an interval on one side, as it should.
    ends = [value - low] * (low <= limits[0] < value) + [high - value] * (high >= limits[1] > value)
    return max(ends, default=math.inf)


def _edges(source: MetricSource, limits: tuple[float, float]) -> tuple[float, float]:
    """The ends of the range in which a unit's values lie."""
    low, high = sorted((edge - source.offset) / source.scale for edge in limits)
    return low, high


def _of_shares(source: MetricSource, units: Units, limits: tuple[float, float], tail: float) -> Ends | None:
    """Ends, in the unit of the values, of a share of answers, the difference of two or the widest of several."""
    low, high = _edges(source, limits)
    if source.statistic in ("difference", "max_min"):
        # A difference lies within as much as its shares do, to both sides of 0.
        low, high = 0.0, max(abs(low), abs(high))
    if not math.isfinite(high - low) or len(source.clusters) > 1:
        return None
    if source.statistic == "difference":
        sides = units.mask(source.options["first"]) | units.mask(source.options["second"])
        units = units.take(np.flatnonzero(sides))
        if not 0 < int(units.mask(source.options["first"]).sum()) < len(units):
            return None
    width, answers = high - low, _answers(source, units)
    if answers is None:
        return None
    hits, place = answers
    values = (hits - low) / width if source.statistic != "ratio" else hits
    codes = clusterings(source, units)[0].codes[place] if source.clusters else None
    if (values < -1e-9).any() or (values > 1 + 1e-9).any():
        return None
    if source.statistic in ("mean", "ratio"):
        ends = share_ends(values, codes, tail)
    elif source.statistic == "difference":
        own = np.arange(len(values)) if codes is None else codes
        ends = difference_ends(values, units.mask(source.options["first"])[place], own, tail)
    elif source.statistic == "max_min":
        names = np.array(list(map(str, units.column(source.options["group"]))))
        own = np.arange(len(values)) if codes is None else codes
        ends = widest_ends(values, np.unique(names, return_inverse=True)[1][place], own, tail)
    else:
        return None
    scale = 1.0 if source.statistic == "ratio" else width
    return ends[0] * scale, ends[1] * scale


def _answers(source: MetricSource, units: Units) -> tuple[Floats, Integers] | None:
    """Every answer by itself, and the unit that it belongs to: units may hold several, of which some are hits."""
    if source.statistic == "ratio":
        counts, hits = units.numbers(source.options["denominator"]), units.values
    elif "weight" in source.options:
        counts = units.numbers(source.options["weight"])
        hits = units.values * counts
    else:
        return units.values, np.arange(len(units))
    whole = [np.rint(column) for column in (counts, hits)]
    if any(np.abs(column - near).max(initial=0.0) > 1e-6 for column, near in zip((counts, hits), whole, strict=True)):
        return None
    place = np.repeat(np.arange(len(units)), whole[0].astype(np.int64))
    first = np.cumsum(whole[0]) - whole[0]
    return (np.arange(len(place)) - first[place] < whole[1][place]).astype(np.float64), place


def _of_difference(source: MetricSource, units: Units, tail: float) -> Reach | None:
    """Of two independent groups, both resampled: the quantiles of the t statistic by Welch's errors, each end no less
    than Student's and longer towards the longer tail of the difference."""
    sides = [units.values[units.mask(source.options[name])] for name in ("first", "second")]
    counts = np.array([len(side) for side in sides])
    if counts.min() < 2:
        return None
    parts = np.array([side.var(ddof=1) / len(side) for side in sides])
    if not parts.sum() > 0:
        return None
    error, df = math.sqrt(parts.sum()), float(parts.sum() ** 2 / (parts**2 / (counts - 1)).sum())
    rng = np.random.default_rng([*counts.tolist(), 4])
    drawn = [side[rng.integers(len(side), size=(DRAWS, len(side)))] for side in sides]
    errors = np.sqrt(sum(one.var(axis=1, ddof=1) / one.shape[1] for one in drawn))
    away = drawn[0].mean(axis=1) - drawn[1].mean(axis=1) - (sides[0].mean() - sides[1].mean())
    flat = errors <= 1e-12 * max(float(np.abs(side).max()) for side in sides)
    t = np.where(flat, np.copysign(np.inf, away), away / np.where(flat, 1.0, errors))
    fewer = int(counts.min())
    skewed = sum(
        sign * float(((side - side.mean()) ** 3).mean()) / len(side) ** 2
        for sign, side in zip((1.0, -1.0), sides, strict=True)
    )
    skewed *= math.sqrt(fewer) / sum(float(side.var()) / len(side) for side in sides) ** 1.5
    down, up = (1 + LONGER_TAIL / fewer * max(0.0, turned) for turned in (-skewed, skewed))
    kept, even, reaches = tail * (1 - MISSING / fewer), _student(df, tail), []
    for share in (max(0.0, kept + SLACK), max(0.0, kept - SLACK)):
        ends = np.quantile(t, (share, 1 - share), method="higher")
        reaches.append(error * max(up * max(even, -float(ends[0])), down * max(even, float(ends[1]))))
    return Reach.of(*reaches)


def _of_mean(method: str, source: MetricSource, units: Units, limits: tuple[float, float], tail: float) -> Reach | None:
    values, found = units.values, clusterings(source, units)
    beyond_files = "where wider" in method
    if not beyond_files and "Gaffke" in method:
        return None if source.clusters else _bounded(values, *_edges(source, limits), tail)
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
        reach *= max(*grown(cluster_deviations(values, codes)), *grown(means))
    # How far files that were not drawn may lie from those at hand is for the audit to say.
    return Reach(reach, math.inf) if beyond_files else Reach.of(reach)


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
    (down, up), reaches = grown(values, SPARED), []
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
        if area.low <= 0.5 <= area.high:
            # Where the groups may be alike, so may their average precision be that of chance.
            ends.append(precision_by_chance(m, m + int(twins.sum())))
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
    """Of the share of members above the threshold that all twins would have: drawn, or where it is tied at those
    between which it lies; above the threshold as it is where no twin may pass it.
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
    if 0 < allowed < n and not tied:
        # Twins above the true threshold are drawn; it lies at one of the two places between which they part.
        above = np.random.default_rng(0).binomial(n, fpr, 10 * DRAWS)
        scale = float((ordered[: min(20, n - 1)] - ordered[min(20, n - 1)]).mean())
        furthest = ordered[0] + scale * math.log1p(-math.log(0.05) / (fpr * n))
        ends = np.r_[furthest, ordered][np.minimum(above + np.arange(len(above)) % 2, n)]
        found = (scores[members][None] > ends[:, None]).sum(axis=1)
        rng, m = np.random.default_rng(1), int(members.sum())
        least = np.where(found > 0, rng.beta(np.maximum(found, 1), m - found + 1), 0.0)
        most = np.where(found < m, rng.beta(found + 1, np.maximum(m - found, 1)), 1.0)
        return Reach.of(max(value - np.quantile(least, tail), np.quantile(most, 1 - tail) - value))
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
    """The members' side as of bounded values under their cap, the twins' by simulated twins; both in squares."""
    _, members, twins = _ranked(source, units)
    members = members & units.mask(source.options.get("tier", {}))
    n = int(twins.sum())
    if n < 2 or int(members.sum()) < 2:
        return None
    scores = (1.0 if source.options.get("higher", True) else -1.0) * units.values
    ahead = (scores[twins][None, :] >= scores[members][:, None]).sum(axis=1)
    cap = math.log2(n + 1)
    bits = cap - np.log2(1 + ahead)
    value = float(bits.mean())
    own_below = value - _dirichlet_quantile(np.r_[0.0, bits], tail)
    own_above = _dirichlet_quantile(np.r_[bits, cap], 1 - tail) - value
    # As shares of all secrets twins are uniform draws; a member stands somewhere between two of them.
    drawn = np.sort(np.random.default_rng(0).random((DRAWS, n)), axis=1)
    ends = np.concatenate([np.zeros((DRAWS, 1)), drawn, np.ones((DRAWS, 1))], axis=1)
    first, last = ends[:, ahead], ends[:, ahead + 1]
    below = float(np.quantile(_bits_behind((first + last) / 2, n).mean(axis=1), tail))
    above = float(np.quantile(_bits_behind(first, n).mean(axis=1), 1 - tail))
    return Reach.of(
        max(
            min(value, math.hypot(own_below, max(0.0, value - below))),
            min(cap - value, math.hypot(own_above, max(0.0, above - value))),
        )
    )


def _bits_behind(share: Floats, n: int) -> Floats:
    """Expected log2(n + 1) - log2(1 + twins ahead) behind such a share of all secrets, among ``n`` twins."""
    from scipy.special import gammaln, xlog1py, xlogy

    points, counts = np.linspace(0.0, 1.0, 400) ** 3, np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    chance = np.exp(ways + xlogy(counts, points[:, None]) + xlog1py(n - counts, -points[:, None]))
    return np.interp(share, points, math.log2(n + 1) - chance @ np.log2(1 + counts))


def _ranked(source: MetricSource, units: Units) -> tuple[Evaluate, Mask, Mask]:
    options = source.options
    evaluate = statistic_of(source)(units, options)
    return evaluate, units.mask(options["members"]), units.mask(options["controls"])


def _student(df: float, tail: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, 1 - tail))
