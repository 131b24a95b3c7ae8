"""How a metric changed from one run to another, from the rows of both.

Paired wherever the runs hold the same units: an exact test that exchanges the runs within clusters
(:mod:`lm_audit.sources.exchanges.swaps`), or for two crossed factors a t-test on the two-way variance; the interval is
the change plus or minus t times the standard error of the paired change (:mod:`lm_audit.sources.spread`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from lm_audit.sources.clusters import Clustering, clusterings, sides_of
from lm_audit.sources.content import OtherData, differing
from lm_audit.sources.evaluation import gathered, statistic_of
from lm_audit.sources.exchanges.alike import changed_alike, moved_alike
from lm_audit.sources.exchanges.swaps import Side, Tested, drawn_test, swap_test, swap_test_of_mean
from lm_audit.sources.functions import weighted_form
from lm_audit.sources.limits import SMALLEST, interval_of, t_p_value
from lm_audit.sources.moved import ROUNDED, by_arithmetic_alone, moved_units, rounding_of
from lm_audit.sources.record import MetricSource
from lm_audit.sources.spread import ROUGH, Spread, difference_of, hidden_in, spread_of
from lm_audit.sources.statistics import STATISTICS, Evaluate, group_means
from lm_audit.sources.units import Floats, Mask, RowTable, Units
from lm_audit.stats.estimate import Estimate

Basis = Literal["paired", "two samples"]


@dataclass(frozen=True)
class Change:
    """``difference`` is b minus a in the metric's unit; ``p`` is ``None`` where too little is known for a test.

    ``floor`` is the smallest p that these data could have given. ``pairs`` counts the units of both runs, ``clusters``
    what was exchanged or resampled. ``others`` counts units of one name that hold another item in each run: they are no
    pairs. ``before`` and ``after`` are the metric on what was compared, which may be less than the runs hold.
    ``error`` and ``df``: standard error of the difference, degrees of freedom.
    """

    difference: Estimate
    p: float | None
    floor: float
    basis: Basis
    pairs: int
    only_a: int
    only_b: int
    clusters: int
    before: float
    after: float
    identical: bool = False
    others: int = 0
    error: float | None = None
    df: float | None = None

    def within(self, margin: float) -> bool:
        """Whether the change is shown to be smaller than ``margin``: two one-sided t-tests at 5 % (Schuirmann 1987)."""
        if self.difference.value is None or self.error is None or self.df is None or self.clusters < SMALLEST:
            return False
        from scipy.special import stdtrit

        return bool(abs(self.difference.value) + float(stdtrit(self.df, 0.95)) * self.error < margin)


def change_between(
    source: MetricSource,
    a: RowTable,
    b: RowTable,
    *,
    target: float | None = None,
    resolution: float = 0.001,
    seed: int = 0,
    redrawn: bool = False,
) -> Change | OtherData | str:
    """The change from run ``a`` to run ``b``, or why there is none; with ``target`` the distance from it is tested.

    ``resolution`` is the smallest p-value that matters to the caller. Units of one name that hold another item are
    never paired; where that leaves too few, the data are others, unless they were ``redrawn`` (by another seed): then
    they are two samples. Raises ``DataError`` for a source that the rows do not know.
    """
    units_a, units_b = gathered(source, a), gathered(source, b)
    if not len(units_a) or not len(units_b):
        return f"no row of {'the first' if not len(units_a) else 'the second'} run has a value"
    place = {key: index for index, key in enumerate(units_b.keys)}
    named = [(i, place[key]) for i, key in enumerate(units_a.keys) if key in place]
    moved = differing([units_a.rows[i] for i, _ in named], [units_b.rows[j] for _, j in named])
    both = [pair for pair, other in zip(named, moved, strict=True) if not other]
    others = len(named) - len(both)
    work = _Work(source, target, resolution, seed)
    if both and 2 * len(both) >= min(len(units_a), len(units_b)):
        first, second = units_a.take([i for i, _ in both]), units_b.take([j for _, j in both])
        found = _paired(work, first, second, len(units_a) - len(named), len(units_b) - len(named))
        return replace(found, others=others) if isinstance(found, Change) else found
    if others and not redrawn:
        return OtherData(others, len(named), str(units_a.keys[named[moved.index(True)][0]]))
    return _independent(work, units_a, units_b)


@dataclass(frozen=True)
class _Work:
    source: MetricSource
    target: float | None
    resolution: float
    seed: int
    rounding: float = 0.0
    """What rounding may set apart in the statistic."""

    @property
    def slow(self) -> bool:
        name = self.source.statistic
        return name not in STATISTICS and weighted_form(name) is None

    @property
    def rough(self) -> bool:
        return self.source.statistic in ROUGH

    def plain(self, before: Floats, after: Floats) -> Floats:
        """The change in the metric's unit."""
        return self._but_rounding(self.source.scale * (after - before))

    def ends(self, before: Floats, after: Floats) -> dict[str, Any]:
        """The metric itself before and after, from one value each of its statistic."""
        told = [float(self.source.offset + self.source.scale * found[0]) for found in (before, after)]
        return {"before": told[0], "after": told[1]}

    def tested(self, before: Floats, after: Floats) -> Floats:
        """What is tested: the change, or that of the distance from the target."""
        if self.target is None:
            return self.plain(before, after)
        origin, scale = self.source.offset - self.target, self.source.scale
        beside = ROUNDED * (abs(self.source.offset) + abs(self.target))
        return self._but_rounding(np.abs(origin + scale * after) - np.abs(origin + scale * before), beside)

    def _but_rounding(self, changes: Floats, beside: float = 0.0) -> Floats:
        """0 where rounding alone makes a change: among as small ones of all exchanges it may well be the largest."""
        return np.where(np.abs(changes) <= abs(self.source.scale) * self.rounding + beside, 0.0, changes)


def _paired(work: _Work, a: Units, b: Units, only_a: int, only_b: int) -> Change | str:
    source, n = work.source, len(a)
    evaluate = statistic_of(source)(a.then(b), source.options)

    def both(weights: Floats) -> tuple[Floats, Floats]:
        none = np.zeros(weights.shape)
        return evaluate(np.hstack([weights, none])), evaluate(np.hstack([none, weights]))

    def change(kind: Callable[[Floats, Floats], Floats]) -> Evaluate:
        return lambda weights: kind(*both(weights))

    ones = np.ones((1, n))
    values = both(ones)
    if not np.isfinite(values).all():
        return "the statistic has no value on the items of both runs"
    work = replace(work, rounding=rounding_of(source, values, a, b))
    value = float(change(work.plain)(ones)[0])
    found = clusterings(source, _labelled(source, a, b))
    moved = moved_units(source, a, b)
    fields: dict[str, Any] = {"basis": "paired", "pairs": n, "only_a": only_a, "only_b": only_b} | work.ends(*values)
    clusters = min(c.count for c in found[:2])
    if not moved.any():
        same = Estimate(0.0, 0.0, 0.0, n=n, method="paired: every item is the same")
        return Change(same, 1.0, 1.0, clusters=clusters, identical=True, **fields)
    if by_arithmetic_alone(source, a, b):
        method = "paired: no item moved by more than a thousandth of the items' spread"
        return Change(Estimate(value, n=n, method=method), 1.0, 1.0, clusters=clusters, identical=True, **fields)
    spread = spread_of(change(work.plain), found, rough=work.rough, seed=work.seed)
    two = _of_two_groups(work, a, b, found)
    if two is not None:
        tested = two
        method = f"paired, two groups over {clusters} clusters; t interval"
    elif len(found) == 1:
        tested = _stricter(_exchanged(work, evaluate, a, b, found[0], moved), _alike(work, a, b, found))
        method = f"paired, {found[0].count} {'clusters' if source.clusters else 'items'} exchanged; t interval"
    else:
        distance = spread
        if work.target is not None:
            distance = spread_of(change(work.tested), found, rough=work.rough, seed=work.seed)
        # With fewer rows or columns the two-way variance is too rough an estimate for its t-test to hold its level.
        known = clusters >= SMALLEST
        tested = Tested(math.nan, 0.0)
        if known:
            tested = Tested(t_p_value(float(change(work.tested)(ones)[0]), distance), 0.0)
            tested = _stricter(tested, _alike(work, a, b, found))
        method = f"paired, two-way t of {found[0].count} x {found[1].count} clusters"
    p = tested.p if math.isfinite(tested.p) else None
    difference = interval_of(value, spread, p if work.target is None else None, n=n, method=method)
    return Change(difference, p, tested.floor, clusters=clusters, **_error(spread), **fields)


def _alike(work: _Work, a: Units, b: Units, found: Sequence[Clustering]) -> Tested | None:
    """Of the largest difference between groups also the test that all of them changed alike; of others nothing."""
    if work.source.statistic != "max_min":
        return Tested(0.0, 0.0)
    return changed_alike(work.source, a, b, found, resolution=work.resolution, seed=work.seed)


def _of_two_groups(work: _Work, a: Units, b: Units, found: Sequence[Clustering]) -> Tested | None:
    """Whether the distance of two groups that are measured over the same clusters changed; ``None`` for others.

    The distance is the same in both runs where the difference did not change, and where it turned its sign: both are
    rejected, the one by the test that both groups changed alike, the other by the t of the sum of both differences,
    whose noise is that of the change. The exchange of runs mixes both, which costs a fifth of the power.
    """
    if work.source.statistic != "max_min" or work.target is not None or min(c.count for c in found[:2]) < SMALLEST:
        return None
    both = a.then(b)
    means = group_means(both, work.source.options)
    n = len(a)

    def apart(weights: Floats) -> tuple[Floats, Floats]:
        none = np.zeros(weights.shape)
        first, second = means(np.hstack([weights, none])), means(np.hstack([none, weights]))
        return first[:, 0] - first[:, 1], second[:, 0] - second[:, 1]

    if means(np.ones((1, 2 * n))).shape[1] != 2 or sides_of(work.source, a, found[0]):
        return None
    spread = spread_of(lambda weights: np.subtract(*apart(weights)), found)
    first, second = apart(np.ones((1, n)))
    p = t_p_value(float(first[0] + second[0]), spread)
    alike = _alike(work, a, b, found)
    return None if math.isnan(p) or alike is None else _stricter(Tested(p, 0.0), alike)


def _stricter(tested: Tested, other: Tested | None) -> Tested:
    """What both tests show; nothing where the other cannot be made."""
    if other is None or math.isnan(tested.p):
        return Tested(math.nan, tested.floor)
    return Tested(max(tested.p, other.p), max(tested.floor, other.floor))


def _labelled(source: MetricSource, a: Units, b: Units) -> Units:
    """The units of ``a``, in the clusters of ``b`` where ``a`` tells none: else all that lack one would be one."""
    if all(None not in a.column(name) for name in source.clusters):
        return a
    told = [
        {**x, **{name: y.get(name) for name in source.clusters if x.get(name) is None}}
        for x, y in zip(a.rows, b.rows, strict=True)
    ]
    return Units(a.keys, a.values, told)


def _exchanged(work: _Work, evaluate: Evaluate, a: Units, b: Units, clustering: Clustering, moved: Mask) -> Tested:
    source = work.source
    if source.statistic == "mean" and "weight" not in source.options and work.target is None:
        changes = b.values - a.values
        sums: Floats = np.bincount(clustering.codes, weights=changes, minlength=clustering.count).astype(np.float64)
        # Sums of clusters that rounding alone sets apart from 0 did not move.
        sums[np.abs(sums) <= 1e-12 * np.abs(np.concatenate([a.values, b.values])).max() * len(a)] = 0.0
        return swap_test_of_mean(sums, resolution=work.resolution, seed=work.seed)
    numbers = np.flatnonzero(np.bincount(clustering.codes, weights=moved, minlength=clustering.count))
    sides = [Side(side[numbers], int(side.sum())) for side in sides_of(source, a, clustering)]

    finer = _finer(work, evaluate, a, b)

    def change(exchanged: Floats) -> Floats:
        swapped = np.zeros((len(exchanged), clustering.count))
        swapped[:, numbers] = exchanged
        of_b = clustering.spread(swapped)
        of_a = 1.0 - of_b
        before, after = np.hstack([of_a, of_b]), np.hstack([of_b, of_a])
        return work.tested(evaluate(before), evaluate(after)) + finer(before, after)

    options: dict[str, Any] = {"width": 2 * len(a), "resolution": work.resolution, "slow": work.slow}
    tested = swap_test(change, len(numbers), sides=sides, seed=work.seed, **options)
    return replace(tested, floor=max(tested.floor, _of_tier(source, a, clustering, moved)))


STEPS = frozenset({"needle.cliff"})
"""Statistics of few possible values, of which many exchanges give one and the same change."""


def _finer(work: _Work, evaluate: Evaluate, a: Units, b: Units) -> Callable[[Floats, Floats], Floats]:
    """What tells exchanges apart that change a statistic of few steps by as much: a little of the mean's change.

    Only what changed as it is: without a change none is found, whatever the mean does. The power of a cliff that moves
    two of four lengths is 38 % without.
    """
    score = work.source.options.get("score")
    if work.source.statistic not in STEPS or work.target is not None or score is None:
        return lambda before, after: np.zeros(len(before))
    none = np.zeros((1, len(a)))
    whole = np.hstack([none + 1, none]), np.hstack([none, none + 1])
    observed = float(work.tested(*map(evaluate, whole))[0])
    values = np.nan_to_num(np.concatenate([a.numbers(score), b.numbers(score)]))
    span = float(np.ptp(values))
    if not observed or not span:
        return lambda before, after: np.zeros(len(before))
    little = 1e-3 * abs(observed) / span
    return lambda before, after: little * ((after - before) @ values) / len(a)


def _of_tier(source: MetricSource, units: Units, clustering: Clustering, moved: Mask) -> float:
    """The p that the largest effect on a tier's members gives in half of comparisons; 0 of what has no tier.

    All m that moved did so one way, as one exchange in 2^(m - 1) has it; what the twins did by chance halves that on
    average. Of a tier of 5 against 200 twins that is 0.03 however large the effect, which reaches no share of a level.
    """
    if "tier" not in source.options:
        return 0.0
    counted = moved & units.mask(source.options["members"]) & units.mask(source.options["tier"])
    members = len(np.unique(clustering.codes[counted]))
    return 2.0**-members if members else 0.0


def _independent(work: _Work, a: Units, b: Units) -> Change | str:
    source, prepare = work.source, statistic_of(work.source)
    evaluate = [prepare(units, source.options) for units in (a, b)]
    values = [of(np.ones((1, len(units)))) for of, units in zip(evaluate, (a, b), strict=True)]
    if not np.isfinite(values).all():
        return "the statistic has no value in one of the runs"
    work = replace(work, rounding=rounding_of(source, values, a, b))
    value = float(work.plain(*values)[0])
    cut = [clusterings(source, units) for units in (a, b)]
    spreads = [
        spread_of(lambda w, of=of: source.scale * of(w), found, rough=work.rough, seed=work.seed)  # type: ignore[misc]
        for of, found in zip(evaluate, cut, strict=True)
    ]
    spread = difference_of(*spreads, hidden=abs(source.scale) * hidden_in(source, a, b))
    # The side of 0 is that of the change itself, where the distance from a target is tested too.
    p = t_p_value(math.copysign(float(work.tested(*values)[0]), value), spread)
    tested, method = Tested(p, 0.0), "two samples, Welch's t on clusters, and their labels permuted"
    if (shares := _two_shares(work, a, b)) is not None:
        tested, method = shares, "two samples, Welch's t; Boschloo's exact test"
    elif len(cut[0]) == len(cut[1]) == 1:
        moved = _relabelled(work, a, b, cut[0][0], cut[1][0])
        tested = Tested(max(moved.p, p if math.isfinite(p) else 0.0), moved.floor)
    if source.statistic == "max_min":
        tested = _stricter(tested, moved_alike(source, (a, b), cut, resolution=work.resolution, seed=work.seed))
    known = tested.p if math.isfinite(tested.p) and spread.clusters >= SMALLEST else None
    difference = interval_of(value, spread, known if work.target is None else None, n=len(a) + len(b), method=method)
    counts: dict[str, Any] = {"pairs": 0, "only_a": len(a), "only_b": len(b), "clusters": spread.clusters}
    return Change(difference, known, tested.floor, "two samples", **counts, **work.ends(*values), **_error(spread))


def _two_shares(work: _Work, a: Units, b: Units) -> Tested | None:
    """Boschloo's test of independent answers of 0 or 1; ``None`` of anything else.

    Labels dealt out anew are Fisher's test there, which holds the number of right answers fixed: of 24 and 24 it finds
    54 % where this one finds 64 %, both at no more than 5 %.
    """
    from lm_audit.stats.shares.two_shares import boschloo_p, possible

    source = work.source
    plain = source.statistic == "mean" and not source.clusters and "weight" not in source.options
    if not plain or work.target is not None or not possible(len(a), len(b)):
        return None
    if not np.isin(np.concatenate([a.values, b.values]), (0.0, 1.0)).all():
        return None
    right = [int(units.values.sum()) for units in (a, b)]
    p = boschloo_p(right[0], len(a), right[1], len(b))
    return Tested(p, boschloo_p(0, len(a), len(b), len(b)))


def _relabelled(work: _Work, a: Units, b: Units, first: Clustering, second: Clustering) -> Tested:
    """Clusters of both runs dealt out anew, as many to each run (of each stratum) as it had."""
    evaluate = statistic_of(work.source)(a.then(b), work.source.options)
    codes = np.concatenate([first.codes, second.codes + first.count])
    strata = np.concatenate([first.strata, second.strata])
    own = np.concatenate([np.zeros(first.count), np.ones(second.count)])

    def draw(rng: np.random.Generator, size: int) -> Floats:
        dealt = np.broadcast_to(own, (size, len(own))).copy()
        for stratum in np.unique(strata):
            here = strata == stratum
            dealt[:, here] = rng.permuted(dealt[:, here], axis=1)
        moved: Floats = dealt - own
        return moved

    def change(moved: Floats) -> Floats:
        of_b = (own + moved)[:, codes]
        return work.tested(evaluate(1.0 - of_b), evaluate(of_b))

    options: dict[str, Any] = {"width": len(codes), "resolution": work.resolution, "slow": work.slow}
    return drawn_test(change, draw, len(own), least=_least(first, second), seed=work.seed, **options)


def _least(first: Clustering, second: Clustering) -> float:
    """The share of ways to deal out the clusters that are as they were, or, of as many in both runs, exchanged."""
    sizes = [(int((first.strata == k).sum()), int((second.strata == k).sum())) for k in {*first.strata, *second.strata}]
    ways = math.prod(math.comb(one + other, one) for one, other in sizes)
    return (2 if all(one == other for one, other in sizes) else 1) / ways


def _error(spread: Spread) -> Mapping[str, Any]:
    known = math.isfinite(spread.variance) and spread.variance > 0
    return {"error": math.sqrt(spread.variance) * max(spread.reach), "df": spread.df} if known else {}
