"""Runs of other items: the p-value of labels dealt out anew, against all ways to deal them, and its interval."""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, hypergeom, t, ttest_ind

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.clusters import clusterings
from lm_audit.sources.evaluation import gathered, statistic_of
from lm_audit.sources.limits import t_p_value
from lm_audit.sources.spread import difference_of, hidden_in, spread_of
from lm_audit.sources.units import RowTable
from lm_audit.stats.shares.two_shares import boschloo_p
from tests.present import present

Rows = list[dict[str, Any]]


def run(name: str, values: Any, **columns: Any) -> Rows:
    """Items of a run's own with a value, and what each column holds of them."""
    return [
        {"item": f"{name}{k}", "v": float(v)} | {key: column[k] for key, column in columns.items()}
        for k, v in enumerate(values)
    ]


def change(a: Rows, b: Rows, source: MetricSource | None = None, **options: Any) -> Change:
    found = change_between(source or MetricSource.mean("v"), RowTable(a), RowTable(b), **options)
    assert isinstance(found, Change) and found.basis == "two samples"
    return found


def dealt(values: np.ndarray, first: int) -> np.ndarray:
    """The difference of means for every way to give ``first`` of the values to the first run, as observed first."""
    whole = values.sum()
    sums = np.array([values[list(chosen)].sum() for chosen in combinations(range(len(values)), first)])
    return np.asarray((whole - sums) / (len(values) - first) - sums / first)


APART = (np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), np.array([9.0, 9.1, 9.2, 9.3, 9.4, 9.5, 9.6]))


def test_runs_far_apart_are_as_sure_as_few_labels_allow() -> None:
    """Welch's t says 1e-13; of the 1,716 ways to deal 6 and 7 labels one is as far apart."""
    a, b = APART
    found = change(run("a", a), run("b", b))
    assert found.p is not None and found.p == pytest.approx(1 / 1716, abs=5e-4)
    assert ttest_ind(b, a, equal_var=False).pvalue < 1e-10
    assert found.floor == 1 / comb(13, 6)
    assert change(run("a", a), run("b", b[:6])).floor == 2 / comb(12, 6)
    assert change(run("a", a), run("b", np.resize(b, 40)), resolution=1e-3).floor == 1 / 10_001


def test_of_runs_without_any_spread_the_labels_alone_decide() -> None:
    found = change(run("a", np.zeros(6)), run("b", np.full(6, 2.0)), resolution=1e-4)
    assert found.p == pytest.approx(2 / comb(12, 6), abs=1e-3)
    assert found.difference.value == 2 and found.difference.low is None


@pytest.mark.parametrize(
    ("right", "sizes"), [((7, 15), (24, 24)), ((0, 5), (8, 12)), ((18, 11), (40, 19)), ((6, 6), (6, 9))]
)
def test_answers_of_other_items_are_compared_by_boschloos_test(right: tuple[int, int], sizes: tuple[int, int]) -> None:
    a, b = (np.arange(n) < k for k, n in zip(right, sizes, strict=True))
    found = change(run("a", a), run("b", b), MetricSource.mean("v", scale=100))
    assert found.p == boschloo_p(right[0], sizes[0], right[1], sizes[1]) > found.floor
    assert found.floor == pytest.approx(boschloo_p(sizes[0], sizes[0], 0, sizes[1])) and found.floor < 1e-3
    apart = found.difference.low is not None and (found.difference.low > 0 or (found.difference.high or 0) < 0)
    assert apart == (found.p <= 0.05) or found.difference.low is None
    assert found.difference.method == "two samples, Welch's t; Boschloo's exact test"


def test_answers_that_weigh_unlike_are_no_shares() -> None:
    rng = np.random.default_rng(6)
    answers, weights = rng.random((2, 12)) < 0.5, rng.random(12)
    source = MetricSource("mean", "v", options={"weight": "w"})
    found = change(run("a", answers[0], w=weights), run("b", answers[1], w=weights), source)
    assert "Boschloo" not in (found.difference.method or "")


@pytest.mark.parametrize(("right", "sizes"), [((4, 1), (5, 9)), ((0, 5), (8, 12)), ((6, 6), (6, 9))])
def test_boschloos_p_is_the_largest_over_all_shares_of_tables_as_far_out(
    right: tuple[int, int], sizes: tuple[int, int]
) -> None:
    def one_sided(a: int, m: int, b: int, n: int) -> float:
        i, j = np.arange(m + 1)[:, None], np.arange(n + 1)[None, :]
        fishers = np.asarray(hypergeom.sf(i - 1, m + n, i + j, m))
        out = fishers <= fishers[a, b] * (1 + 1e-9)
        return max(
            float(binom.pmf(np.arange(m + 1), m, p) @ out @ binom.pmf(np.arange(n + 1), n, p))
            for p in np.linspace(0, 1, 1001)
        )

    (a, b), (m, n) = right, sizes
    expected = min(1.0, 2 * min(one_sided(a, m, b, n), one_sided(b, n, a, m)))
    assert boschloo_p(a, m, b, n) == pytest.approx(expected, rel=2e-3)


@pytest.mark.slow  # hundreds of tests of scipy's
@pytest.mark.parametrize("sizes", [(8, 8), (12, 20)])
def test_boschloos_test_keeps_its_level_at_every_share_and_finds_more_than_fishers(sizes: tuple[int, int]) -> None:
    every = [(i, j) for i in range(sizes[0] + 1) for j in range(sizes[1] + 1)]
    rejected = [pair for pair in every if boschloo_p(pair[0], sizes[0], pair[1], sizes[1]) <= 0.05]
    fishers = [
        (i, j) for i, j in every if fisher_exact(np.array([[i, j], [sizes[0] - i, sizes[1] - j]])).pvalue <= 0.05
    ]
    for share in (0.003, 0.03, 0.11, 0.37, 0.5, 0.71, 0.985):
        chances = [binom.pmf(np.arange(n + 1), n, share) for n in sizes]
        assert sum(chances[0][i] * chances[1][j] for i, j in rejected) <= 0.05
    assert len(rejected) > len(fishers)


def test_only_answers_that_hang_on_nothing_are_compared_by_boschloos_test() -> None:
    a, b = run("a", np.arange(30) < 9, c=range(30)), run("b", np.arange(30) < 20, c=range(30))
    boschloos = boschloo_p(9, 30, 20, 30)
    assert change(a, b).p == boschloos
    for source in (
        MetricSource.mean("v", clusters=("c",)),
        MetricSource("sum", "v"),
        MetricSource.mean("v", scale=-1, transform="negate"),
    ):
        assert "Boschloo" not in change(a, b, source).difference.method
    assert "Boschloo" not in change(a, b, target=0.5).difference.method
    assert "Boschloo" not in change(a, [*b, {"item": "half", "v": 0.5, "c": 99}]).difference.method


def test_the_larger_of_both_p_values_stands_and_the_interval_agrees() -> None:
    """Runs of unequal size and spread, where labels and Welch's t disagree by much, each being the larger once."""
    wide, narrow = np.array([-3.0, -1.0, 0.5, 1.5, 3.5, 4.0]), np.linspace(3.3, 3.8, 12)
    for a, b in ((wide, narrow), (np.array([0, 0, 0.1, 0.1, 0.1, 0.5]), np.array([0.0, 0, 1, 1, 1, 1, 1, 9]))):
        changes = dealt(np.concatenate([a, b]), len(a))
        exact = float((np.abs(changes) >= abs(changes[0]) - 1e-9).mean())
        welch = ttest_ind(b, a, equal_var=False)
        found = change(run("a", a), run("b", b), resolution=1e-4)
        assert abs(exact - welch.pvalue) > 0.02 and found.p is not None
        assert found.p == pytest.approx(max(exact, welch.pvalue), abs=0.015)
        assert found.difference.low is not None and found.difference.high is not None
        assert ((found.p or 0.0) <= 0.05) is (found.difference.low > 0 or found.difference.high < 0)


def test_where_labels_say_less_than_the_t_the_interval_says_so_too() -> None:
    """Welch's t is sure at 5 %, labels are not: the limit next to 0 goes with them."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        a, b = rng.normal(0, 0.1, 6), rng.normal(0.45, 1, 30)
        welch = ttest_ind(b, a, equal_var=False)
        if 0.02 < welch.pvalue < 0.05:
            found = change(run("a", a), run("b", b), resolution=1e-4)
            if found.p is not None and found.p > 0.06:
                break
    else:
        raise AssertionError("no runs that labels and t see differently")
    plain = welch.confidence_interval(0.95)
    low, high = (found.difference.low or 0.0), (found.difference.high or 0.0)
    assert (plain.low > 0 or plain.high < 0) and low < 0 < high


MEMBERS = MetricSource("auc", "v", options={"members": {"role": "m"}, "controls": {"role": "c"}})


def test_members_stay_members_when_labels_are_dealt_out() -> None:
    """Members and controls far apart: dealt out together, hardly any way would leave an AUC as it is."""
    rng = np.random.default_rng(4)
    sizes = (6, 6)
    roles = ["m"] * sizes[0] + ["c"] * sizes[1]
    a = np.concatenate([rng.normal(0, 1, 6), rng.normal(0, 1, 6)])
    b = np.concatenate([rng.normal(1.5, 1, 6), rng.normal(0, 1, 6)])
    found = change(run("a", a, role=roles), run("b", b, role=roles), MEMBERS, resolution=1e-3)

    def auc(members: np.ndarray, controls: np.ndarray) -> float:
        return float((np.sign(members[:, None] - controls).mean() + 1) / 2)

    members, controls = np.concatenate([a[:6], b[:6]]), np.concatenate([a[6:], b[6:]])
    ways = [list(chosen) for chosen in combinations(range(12), 6)]
    rest = [[k for k in range(12) if k not in chosen] for chosen in ways]
    table_first = np.array([[auc(members[i], controls[j]) for j in ways[::7]] for i in ways[::7]])
    table_second = np.array([[auc(members[i], controls[j]) for j in rest[::7]] for i in rest[::7]])
    changes = table_second - table_first
    observed = auc(b[:6], b[6:]) - auc(a[:6], a[6:])
    exact = float((np.abs(changes) >= abs(observed) - 1e-9).mean())
    assert found.difference.value == pytest.approx(observed)
    assert found.p is not None and found.p >= exact - 0.03
    assert found.floor == pytest.approx(max(2 / comb(12, 6) ** 2, 1 / 10_001))


def test_clusters_of_other_items_are_dealt_out_whole() -> None:
    """Six clusters of three against seven: values within a cluster are alike, so that 1,716 ways are all there are."""
    source = MetricSource.mean("v", clusters=("g",))
    a, b = (np.repeat(x, 3) for x in APART)
    found = change(run("a", a, g=np.repeat(range(6), 3)), run("b", b, g=np.repeat(range(7), 3)), source)
    assert (found.clusters, found.floor) == (6, 1 / comb(13, 6))
    assert found.p == pytest.approx(1 / 1716, abs=5e-4)


@pytest.mark.parametrize(("size", "target"), list(product((0.0, 5.0), (0.0,))))
def test_with_a_target_the_distance_is_dealt_out_and_the_interval_is_the_plain_one(size: float, target: float) -> None:
    a, b = APART[0] - 0.25 - size, APART[1][:6] - 9.25 + size
    found, plain = change(run("a", a), run("b", b), target=target), change(run("a", a), run("b", b))
    # As far below the target as above: no change of the distance, whatever that of the mean.
    assert found.p == pytest.approx(1.0, abs=0.02)
    welch = ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((welch.low, welch.high))
    assert plain.difference.value == pytest.approx(2 * size, abs=1e-9)


def test_the_labels_of_a_median_are_dealt_out_too_and_its_error_is_drawn_by_the_seed() -> None:
    median = MetricSource("median", "v")
    a, b = np.array([-0.7, -0.2, 1.7, 0.7, -1.6, 0.0]), np.array([-0.7, 1.6, -3.6, 1.9, 1.9, 5.9, 2.1])
    values = np.concatenate([a, b])
    deals = [np.isin(range(13), chosen) for chosen in combinations(range(13), 6)]
    changes = np.array([np.median(values[~first]) - np.median(values[first]) for first in deals])
    exact = float((np.abs(changes) >= abs(changes[0]) - 1e-9).mean())
    found = change(run("a", a), run("b", b), median, resolution=1e-3, seed=1)
    assert found.error is not None and found.df is not None and found.difference.value is not None
    welch = 2 * float(t.sf(abs(found.difference.value) / found.error, found.df))
    assert exact > welch + 0.05 and found.p == pytest.approx(exact, abs=0.02)
    errors = [change(run("a", a), run("b", b), median, seed=seed).error for seed in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]


def t_of_other_items(a: np.ndarray, b: np.ndarray) -> float:
    """The p-value without the labels, which are slow to deal out: what is left of it is all that can be significant."""
    source, sides = MetricSource.mean("v"), [gathered(MetricSource.mean("v"), RowTable(run("i", x))) for x in (a, b)]
    first, second = (spread_of(statistic_of(source)(units, {}), clusterings(source, units)) for units in sides)
    spread = difference_of(first, second, hidden=hidden_in(source, *sides))
    return t_p_value(float(b.mean() - a.mean()), spread)


@pytest.mark.parametrize(("sizes", "ratio"), [((40, 8), 3.0), ((50, 12), 2.0), ((12, 12), 3.0), ((24, 24), 3.0)])
def test_two_skewed_runs_of_unlike_spread_are_no_change(sizes: tuple[int, int], ratio: float) -> None:
    """Exponential items of one mean: Welch's t rejects 8 to 10 %, and so do the labels of the smaller run."""
    rng = np.random.default_rng(17)
    found = [
        t_of_other_items(rng.exponential(size=sizes[0]), 1 + ratio * (rng.exponential(size=sizes[1]) - 1))
        for _ in range(500)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.055 + 0.01


def test_two_skewed_runs_alike_or_normal_ones_have_welchs_t() -> None:
    rng = np.random.default_rng(3)
    a = rng.exponential(size=12)
    even = rng.permutation(np.linspace(-1, 1, 12)) * 3
    for first, second in ((a, a + 0.7), (a, 0.7 - a), (even, even / 4 + 1)):
        welch = ttest_ind(second, first, equal_var=False).pvalue
        assert t_of_other_items(first, second) == pytest.approx(welch, rel=0.02)


def test_the_interval_of_skewed_runs_reaches_further_where_the_longer_tail_is() -> None:
    narrow, wide = np.linspace(0, 1, 12), 0.2 * np.arange(12) ** 2.2
    for sign in (1, -1):
        found = change(run("a", sign * narrow), run("b", sign * wide))
        value, low, high = (present(x) for x in (found.difference.value, found.difference.low, found.difference.high))
        near, far = (value - low, high - value)[::sign]
        assert far > 1.2 * near
        assert present(found.error) > 1.2 * near / t.isf(0.025, present(found.df))
    like = change(run("a", wide), run("b", wide + 1)).difference
    assert present(like.high) - present(like.value) == pytest.approx(present(like.value) - present(like.low))


@pytest.mark.parametrize("n", [8, 12])
def test_a_run_that_shows_one_value_may_hide_others(n: int) -> None:
    """One in ten is not 0 in one run, half in the other, and the means are the same: 7 to 16 % were a change."""
    rng = np.random.default_rng(5)
    found = [
        t_of_other_items(*((rng.random(n) < share) * rng.exponential(1 / share, size=n) for share in (0.5, 0.1)))
        for _ in range(500)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.02
    # What lies further off than it can hide is a change.
    far = change(run("a", np.zeros(n)), run("b", 5 + rng.normal(size=n)))
    assert present(far.p) < 0.01 and present(far.difference.low) > 1


def test_of_two_values_nothing_is_hidden() -> None:
    a, b = np.zeros(12), np.repeat([0.0, 100.0], 6)
    found = change(run("a", a), run("b", b))
    assert found.p == pytest.approx(
        max(fisher_exact(np.array([[12, 0], [6, 6]]))[1], ttest_ind(a, b, equal_var=False).pvalue), abs=0.006
    )
