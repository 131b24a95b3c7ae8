"""A change between two runs, its test and its interval, against values worked out elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_ind, ttest_rel

from lm_audit.sources import MetricSource, register_statistic
from lm_audit.sources.change import Change, _error, _Work, change_between
from lm_audit.sources.content import OtherData
from lm_audit.sources.exchanges.swaps import Side, _errors, draws_for, swap_test, swap_test_of_mean
from lm_audit.sources.limits import interval_of, t_p_value
from lm_audit.sources.moved import ROUNDED, _spread
from lm_audit.sources.spread import Spread, difference_of
from lm_audit.sources.units import RowTable
from lm_audit.stats import Estimate
from lm_audit.stats.degrees_of_freedom import degrees_of_freedom

Rows = list[dict[str, Any]]
SOURCE = MetricSource.mean("v")
A = np.array([0.3, 1.1, -0.4, 0.9, 0.2, 1.7, -0.8, 0.6])
STEPS = np.array([0.5, 0.9, 0.2, 1.4, 0.7, 0.1, 1.2, 0.8])


def rows(values: Any, **columns: Any) -> Rows:
    """Items i0, i1, ... with a value, and what each column holds of them."""
    return [
        {"item": f"i{k}", "v": float(v), **{name: column[k] for name, column in columns.items()}}
        for k, v in enumerate(values)
    ]


def between(a: Rows, b: Rows, source: MetricSource = SOURCE, **options: Any) -> Any:
    return change_between(source, RowTable(a), RowTable(b), **options)


def change(a: Rows, b: Rows, source: MetricSource = SOURCE, **options: Any) -> Change:
    found = between(a, b, source, **options)
    assert isinstance(found, Change)
    return found


# The test that exchanges runs.


@pytest.mark.parametrize(
    ("differences", "p", "floor"),
    [
        ([], 1.0, 1.0),
        ([0.0, 0.0], 1.0, 1.0),
        ([1.0, 2.0, 4.0], 2 / 8, 2 / 8),
        ([1.0, 2.0, -4.0], 1.0, 2 / 8),
        ([-1.0, -2.0, 4.0, 0.0, 8.0], 8 / 16, 2 / 16),
        # Of one size: the sign test.
        ([1.0, 1.0, -1.0, 1.0], 10 / 16, 2 / 16),
        ([-2.0, -2.0, -2.0], 2 / 8, 2 / 8),
        ([0.1 + 0.2, 0.3, -0.3], 1.0, 2 / 8),
    ],
)
def test_signs_of_differences_are_turned(differences: list[float], p: float, floor: float) -> None:
    found = swap_test_of_mean(np.array(differences), resolution=0.01, seed=0)
    assert (found.p, found.floor) == pytest.approx((p, floor))


def test_many_signs_are_drawn_by_the_seed_as_often_as_the_resolution_asks() -> None:
    strong, none = np.arange(1.0, 41.0), np.arange(1.0, 41.0) * np.where(np.arange(40) % 2, 1, -1)
    assert swap_test_of_mean(strong, resolution=1e-3, seed=1).p == 1 / 10_001
    assert swap_test_of_mean(strong, resolution=1e-3, seed=1).floor == 1 / 10_001
    assert swap_test_of_mean(strong, resolution=1.0, seed=1).p == 1 / 2000
    # What is no change after the first draws is not asked again.
    found = [swap_test_of_mean(none, resolution=1e-3, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2] and found[0].p * 2000 == pytest.approx(round(found[0].p * 2000))
    assert found[0].floor == 1 / 10_001
    largest = 2.0 ** np.arange(18.0)
    assert swap_test_of_mean(largest, resolution=1e-3, seed=1).floor == 2.0**-17
    assert swap_test_of_mean(np.append(largest, 0.5), resolution=1e-3, seed=1).floor == 1 / 10_001
    some = np.arange(1.0, 41.0) * np.where(np.arange(40) % 4 == 1, -1, 1)
    drawn = [swap_test_of_mean(some, resolution=1e-3, seed=seed).p for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and drawn[0] * 10_001 == pytest.approx(round(drawn[0] * 10_001))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_many_differences_of_one_size_but_for_rounding_have_the_sign_test(unit: float) -> None:
    found = swap_test_of_mean(unit * np.array([0.1 + 0.2] * 20 + [0.3] * 20), resolution=1e-3, seed=0)
    assert (found.p, found.floor) == pytest.approx((2.0**-39, 2.0**-39))


@pytest.mark.parametrize(("resolution", "draws"), [(1.0, 1999), (0.00501, 1999), (0.001, 10_000), (0.0003, 33_334), (1e-9, 99_999)])  # fmt: skip  # noqa: E501
def test_ten_times_the_inverse_of_the_resolution_are_drawn(resolution: float, draws: int) -> None:
    assert draws_for(resolution) == draws


def exchanging(differences: Any, **options: Any) -> Any:
    """The same test for a statistic that is not taken for a mean."""
    d = np.asarray(differences, dtype=np.float64)
    settings: dict[str, Any] = {"width": len(d), "resolution": 0.01, "seed": 0} | options
    return swap_test(lambda patterns: (1 - 2 * patterns) @ d, len(d), **settings)


def test_all_exchanges_of_few_clusters_are_tried() -> None:
    assert (exchanging([]).p, exchanging([]).floor) == (1.0, 1.0)
    for d in ([1.0, 2.0, 4.0], [1.0, 2.0, -4.0], [1.0, -2.0, 4.0, 8.0, -16.0], list(2.0 ** np.arange(12))):
        found, known = exchanging(d), swap_test_of_mean(np.array(d), resolution=0.01, seed=0)
        assert (found.p, found.floor) == pytest.approx((known.p, known.floor))
    # Of thirteen they are drawn, and more of them where few reach what is seen.
    many = exchanging(2.0 ** np.arange(13), resolution=1e-3)
    assert many.floor == 2 / 2**13 and many.floor / 2 < many.p < many.floor * 2
    assert exchanging(2.0 ** np.arange(20), resolution=1e-3).floor == 1 / 10_001
    assert exchanging(2.0 ** np.arange(20), resolution=1e-5, slow=True).floor == 1 / 10_000
    assert (many.p * 10_001) % 1 == pytest.approx(0, abs=1e-6)


def test_a_change_without_a_value_speaks_for_no_change() -> None:
    def empty(patterns: np.ndarray) -> np.ndarray:
        return np.where(patterns.sum(axis=1) == 0, 1.0, np.nan)

    assert swap_test(empty, 3, width=3, resolution=0.01, seed=0).p == 1.0


@pytest.mark.parametrize("count", [3, 14])
def test_runs_whose_own_statistic_has_no_value_are_not_told_apart(count: int) -> None:
    """Enumerated and drawn: no p of 0 comes of it."""

    def of_the_others(patterns: np.ndarray) -> np.ndarray:
        return np.where(patterns.sum(axis=1) == 0, np.nan, patterns.sum(axis=1))

    assert swap_test(of_the_others, count, width=count, resolution=0.01, seed=0).p == 1.0


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1e5])
@pytest.mark.parametrize("count", [10, 15])
def test_an_exchange_knows_no_unit(unit: float, count: int) -> None:
    d = np.random.default_rng(count).normal(0.5, 1.0, count)
    assert exchanging(unit * d).p == exchanging(d).p < 1


def test_a_slow_statistic_is_tried_on_a_quarter_first() -> None:
    d = np.tile([1.0, -1.01], 10)
    for slow, draws in ((False, 2000), (True, 500)):
        p = exchanging(d, resolution=1e-3, slow=slow).p
        assert p > 0.5 and (p * draws) % 1 == pytest.approx(0, abs=1e-6)


def test_a_change_in_which_no_cluster_has_a_part_of_its_own_is_compared_as_it_is() -> None:
    """Three clusters that count together only: their errors are nothing to hold a change against."""

    def together(patterns: np.ndarray) -> np.ndarray:
        return np.asarray((1 - 2 * patterns[:, :3]).prod(axis=1))

    first = np.arange(4) < 2
    found = swap_test(together, 4, width=4, resolution=0.01, sides=[Side(first, 2), Side(~first, 2)], seed=0)
    assert found.p == swap_test(together, 4, width=4, resolution=0.01, seed=0).p == 1.0


def test_the_error_of_two_sides_is_welchs() -> None:
    """Changes of five clusters on one side and four on the other, each exchanged or not."""
    rng = np.random.default_rng(3)
    d, first = rng.normal(1, 1, 9), np.arange(9) < 5
    patterns = (np.arange(2**8)[:, None] >> np.arange(9) & 1).astype(np.float64)
    signed = (1 - 2 * patterns) * d
    changes = signed[:, first].mean(axis=1) - signed[:, ~first].mean(axis=1)
    found = _errors(changes, patterns, [Side(first, 5), Side(~first, 4)])
    known = np.sqrt(signed[:, first].var(axis=1, ddof=1) / 5 + signed[:, ~first].var(axis=1, ddof=1) / 4)
    assert found == pytest.approx(known)
    for unit in (1e-12, 1e-6, 1e6):
        assert _errors(unit * changes, patterns, [Side(first, 5), Side(~first, 4)]) == pytest.approx(unit * known)
    assert _errors(np.zeros(256), patterns, [Side(first, 5), Side(~first, 4)]) is None


@pytest.mark.parametrize(
    "changed",
    [
        [4.3, 0.4, 0.8, 2.6, 0.7, 1.3, -0.1, 1.0, 0.5, 1.2, 1.1, 1.0, 0.2, 0.2],
        # So surely that more exchanges are drawn than at first.
        [-1.8, -1.1, -1.1, 0.0, -1.9, -2.8, -2.5, -2.4, -1.9, -2.8, -2.5, -2.2, -2.9, -3.0],
    ],
)
def test_of_drawn_exchanges_too_the_change_over_its_own_error_is_compared(changed: list[float]) -> None:
    """Four clusters on one side, whose changes spread widely, and ten on the other that moved by less."""
    d = np.array(changed)
    first = np.arange(14) < 4

    def changes(patterns: np.ndarray) -> np.ndarray:
        signed = (1 - 2 * patterns) * d
        return np.asarray(signed[:, first].mean(axis=1) - signed[:, ~first].mean(axis=1))

    def over_error(patterns: np.ndarray) -> np.ndarray:
        signed = (1 - 2 * patterns) * d
        error = signed[:, first].var(axis=1, ddof=1) / 4 + signed[:, ~first].var(axis=1, ddof=1) / 10
        return np.asarray(np.abs(changes(patterns)) / np.sqrt(error))

    patterns = (np.arange(2**13)[:, None] >> np.arange(14) & 1).astype(np.float64)
    sizes, plain = over_error(patterns), np.abs(changes(patterns))
    exact, other = (sizes >= sizes[0] - 1e-9).mean(), (plain >= plain[0] - 1e-9).mean()
    sides = [Side(first, 4), Side(~first, 10)]
    found = swap_test(changes, 14, width=14, resolution=1e-3, sides=sides, seed=0)
    draws = 2000 if exact > 0.01 else 10_001
    assert abs(exact - other) > 0.1 and found.p == pytest.approx(exact, abs=4 * (exact / draws) ** 0.5)


# The interval.


def test_a_t_test_of_a_spread() -> None:
    assert t_p_value(2.0, Spread(1.0, 10, 11)) == pytest.approx(2 * t.sf(2, 10))
    assert t_p_value(-3.0, Spread(4.0, 5.5, 11)) == pytest.approx(2 * t.sf(1.5, 5.5))
    assert t_p_value(2.0, Spread(1.0, 0.8, 2)) == pytest.approx(2 * t.sf(2, 0.8))
    assert [t_p_value(0.0, Spread(variance, 5, 6)) for variance in (0.0, 1.0)] == [1.0, 1.0]
    assert math.isnan(t_p_value(0.0, Spread(math.nan, 5, 6)))
    for spread in (Spread(math.nan, 10, 11), Spread(0.0, 10, 11), Spread(-1.0, 10, 11), Spread(1.0, 0, 11), Spread(1.0, math.nan, 11), Spread(math.inf, 10, 11)):  # fmt: skip  # noqa: E501
        assert math.isnan(t_p_value(2.0, spread))


def test_an_interval_is_t_times_the_error_from_six_clusters_on() -> None:
    found = interval_of(2.0, Spread(0.25, 10, 6), 0.001, n=40, method="m")
    half = t.isf(0.025, 10) * 0.5
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))
    assert (found.value, found.n, found.method, found.note, found.confidence) == (2.0, 40, "m", None, 0.95)
    few = interval_of(2.0, Spread(0.25, 10, 5), 0.001, n=40, method="m")
    assert few == Estimate(2.0, n=40, method="m", note="5 independent clusters, an interval needs 6")
    for variance in (0.0, -1.0, math.nan, math.inf):
        flat = interval_of(2.0, Spread(variance, 10, 6), 0.001, n=40, method="m")
        assert flat == Estimate(2.0, n=40, method="m", note="the change has no spread over the items: no interval")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("variance", "p", "moved"),
    [
        (0.25, 0.01, True),  # the t interval holds 0, and the exact test says otherwise
        (0.04, 0.2, True),
        (0.04, 0.01, False),
        (0.25, 0.2, False),
        (0.25, 0.05, True),
        (0.04, 1.0, True),
        (0.04, 0.0501, True),
        (0.25, None, False),
    ],
)
def test_the_limit_next_to_0_agrees_with_the_exact_test(
    sign: int, variance: float, p: float | None, moved: bool
) -> None:
    found = interval_of(1.0 * sign, Spread(variance, 10, 6), p, n=40, method="m")
    half = t.isf(0.025, 10) * variance**0.5
    near = 1 - half if p is None or not moved else 1 - norm.isf(0.025) / max(norm.isf(p / 2), 1e-12)
    low, high = (near, 1 + half) if sign > 0 else (-1 - half, -near)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_a_change_of_nothing_has_the_t_interval_whatever_the_test_says() -> None:
    found = interval_of(0.0, Spread(0.25, 10, 6), 0.01, n=40, method="m")
    assert found.low == -(found.high or 0.0) == pytest.approx(-t.isf(0.025, 10) / 2)


# Two runs.


def test_a_paired_change_of_a_mean() -> None:
    found = change(rows(A), rows(A + STEPS), resolution=0.01)
    assert (found.basis, found.pairs, found.only_a, found.only_b, found.clusters) == ("paired", 8, 0, 0, 8)
    assert (found.others, found.identical) == (0, False)
    error = STEPS.std(ddof=1) / 8**0.5
    assert (found.difference.value, found.error, found.df) == pytest.approx((STEPS.mean(), error, 7))
    assert (found.p, found.floor) == (2 / 2**8, 2 / 2**8)
    assert found.difference.method == "paired, 8 items exchanged; t interval" and found.difference.n == 8
    known = ttest_rel(A + STEPS, A).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((known.low, known.high))
    scaled = change(rows(A), rows(A + STEPS), MetricSource.mean("v", scale=-100, offset=7))
    assert (scaled.difference.value, scaled.error) == pytest.approx((-100 * STEPS.mean(), 100 * error))


def test_clusters_change_sides_together() -> None:
    labels = [k // 2 for k in range(8)]
    source = MetricSource.mean("v", clusters=("g",))
    found = change(rows(A, g=labels), rows(A + STEPS, g=labels), source)
    assert (found.clusters, found.pairs, found.p, found.difference.low) == (4, 8, 2 / 2**4, None)
    assert found.difference.method == "paired, 4 clusters exchanged; t interval"
    assert found.difference.note == "4 independent clusters, an interval needs 6"
    # Where a run does not tell them those of the other hold, item by item.
    bare = rows(A, g=[0, None, 1, None, None, None, None, 3])
    assert change(bare, rows(A + STEPS, g=labels), source) == found
    # Where both tell them, those of the first do.
    own = rows(A, g=[9] * 4 + [None] * 4)
    assert change(own, rows(A + STEPS, g=labels), source).clusters == 3
    assert change(rows(A, g=[9] * 4 + [8] * 4), rows(A + STEPS, g=labels), source).clusters == 2
    assert change(rows(A), rows(A + STEPS, g=labels), MetricSource.mean("v")).clusters == 8


def test_the_metric_before_and_after_is_told_in_its_own_unit() -> None:
    found = change(rows(A), rows(A + STEPS), MetricSource.mean("v", scale=-100, offset=7))
    told = 7 - 100 * A.mean(), 7 - 100 * (A + STEPS).mean()
    assert (found.before, found.after) == pytest.approx(told)
    assert found.difference.value == pytest.approx(told[1] - told[0])


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0, 1e6, 1e7 / 3])
def test_a_cluster_that_rounding_alone_sets_apart_did_not_move(unit: float) -> None:
    labels = [k // 2 for k in range(8)]
    up = np.array([0.1, -0.1, 0.7, -0.7, 0.3, -0.3, 0.5, 0.5])
    a, b = rows(unit * A, g=labels), rows(unit * (A + up), g=labels)
    found = change(a, b, MetricSource.mean("v", clusters=("g",)))
    assert (found.p, found.floor) == (1.0, 1.0)
    # Beside clusters that did move it tells no more than they.
    b = rows(unit * (A + up + np.repeat([0, 0, 2.0, 3.0], 2)), g=labels)
    assert change(a, b, MetricSource.mean("v", clusters=("g",))).floor == 0.5
    assert change(a, b, MetricSource.mean("v", clusters=("g",))).floor == 0.5


def test_two_crossed_factors_have_the_two_way_t() -> None:
    rng = np.random.default_rng(1)
    r, c = (list(map(str, index.ravel())) for index in np.indices((6, 7)))
    steps = 1 + rng.normal(size=(6, 1)) + rng.normal(size=(1, 7)) + 0.3 * rng.normal(size=(6, 7))
    source = MetricSource.mean("v", clusters=("r", "c"))
    a = rng.normal(size=42)
    found = change(rows(a, r=r, c=c), rows(a + steps.ravel(), r=r, c=c), source)
    by_row, by_column = steps.mean(axis=1).var(ddof=1) / 6, steps.mean(axis=0).var(ddof=1) / 7
    rest = steps - steps.mean(axis=1, keepdims=True) - steps.mean(axis=0) + steps.mean()
    variance = by_row + by_column - (rest**2).sum() / 30 / 42
    df = degrees_of_freedom([(by_row, 5), (by_column, 6)], variance)
    assert (found.difference.value, found.error, found.df) == pytest.approx((steps.mean(), variance**0.5, df))
    assert (found.p, found.floor) == pytest.approx((2 * t.sf(abs(steps.mean()) / variance**0.5, df), 0.0))
    assert (found.clusters, found.difference.method) == (6, "paired, two-way t of 6 x 7 clusters")
    few = change(rows(a[:35], r=r, c=c), rows((a + steps.ravel())[:35], r=r, c=c), source)
    assert (few.p, few.floor, few.clusters) == (None, 0.0, 5)


def test_of_crossed_factors_the_distance_from_a_target_has_a_spread_of_its_own() -> None:
    """From below the target to above it: the distance changes by the sum of both means, not by their difference."""
    rng = np.random.default_rng(6)
    r, c = (list(map(str, index.ravel())) for index in np.indices((6, 7)))
    source = MetricSource.mean("v", clusters=("r", "c"))
    a, b = rng.normal(-1, 0.5, 42), rng.normal(1.3, 0.5, 42)
    found = change(rows(a, r=r, c=c), rows(b, r=r, c=c), source, target=0.0)
    turned = change(rows(-a, r=r, c=c), rows(b, r=r, c=c), source)
    assert turned.error is not None and turned.df is not None
    distance = b.mean() + a.mean()
    assert found.p == pytest.approx(2 * t.sf(abs(distance) / turned.error, turned.df))
    assert found.error != pytest.approx(turned.error, rel=0.05)


@pytest.mark.parametrize("statistic", ["mean", "median", "max_min"])
def test_a_target_beyond_all_values_is_a_direction(statistic: str) -> None:
    """As far from it as the values are above it: the change of the distance is the change, and so is its test."""
    rng = np.random.default_rng(6)
    r, c = (list(map(str, index.ravel())) for index in np.indices((6, 7)))
    groups: dict[str, Any] = {"group": "r"} if statistic == "max_min" else {}
    source = MetricSource(statistic, "v", clusters=("r", "c"), options=groups)
    a = rows(rng.normal(size=42), r=r, c=c)
    b = rows(rng.normal(0.7, 1.5, size=42), r=r, c=c)
    plain, aimed, again = (change(a, b, source, target=target, seed=5) for target in (None, -9.0, -9.0))
    assert plain.p == pytest.approx(aimed.p) and aimed == again and isinstance(aimed.floor, float)
    assert plain.p is None or plain.p < 1


MANY = np.random.default_rng(8).normal(size=30)
FEW_UP = 0.3 + 0.9 * np.random.default_rng(9).normal(size=30)


def test_of_up_to_eighteen_items_a_mean_has_all_exchanges_and_of_more_those_that_the_seed_draws() -> None:
    assert change(rows(MANY[:15]), rows(MANY[:15] + np.arange(1.0, 16.0)), resolution=1e-3).floor == 2.0**-14
    strong = change(rows(MANY), rows(MANY + np.arange(1.0, 31.0)), resolution=1e-3)
    assert strong.p == strong.floor == 1 / 10_001
    for source in (SOURCE, MetricSource("median", "v")):
        drawn = [change(rows(MANY), rows(MANY + FEW_UP), source, resolution=1e-3, seed=seed) for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] and drawn[0].p != drawn[2].p
    # The error of a median is drawn too.
    assert drawn[0].error != drawn[2].error


def test_only_items_that_moved_are_exchanged() -> None:
    """Three of thirty: their four exchanges are all that there are."""
    moved = MANY.copy()
    moved[np.argsort(MANY)[13:16]] += 5.0
    found = change(rows(MANY), rows(moved), MetricSource("median", "v"))
    assert found.p is not None and (4 * found.p) % 1 == 0 and (4 * found.floor) % 1 == 0


@pytest.mark.parametrize("target", [0.0, 50.0, 90.0, 200.0])
def test_with_a_target_the_distance_from_it_is_tested(target: float) -> None:
    """Per cent of 0.3 + 0.5: towards a target above, away from one below; the interval is that of the plain change."""
    source = MetricSource.mean("v", scale=100, offset=5)
    found = change(rows(A), rows(A + STEPS), source, target=target)
    first, second = 100 * A + 5, 100 * (A + STEPS) + 5
    assert found.difference.value == pytest.approx((second - first).mean())
    patterns = (np.arange(2**8)[:, None] >> np.arange(8) & 1).astype(bool)
    sums = [
        abs(np.where(p, first, second).mean() - target) - abs(np.where(p, second, first).mean() - target)
        for p in patterns
    ]
    assert found.p == pytest.approx(np.mean(np.abs(sums) >= abs(sums[0]) - 1e-9))
    plain = change(rows(A), rows(A + STEPS), source)
    assert (found.error, found.df) == (plain.error, plain.df)
    assert found.difference == plain.difference


@pytest.mark.parametrize(("offset", "target"), [(0.4, 0.4), (0.1, 0.7), (-0.5, 0.2)])
def test_what_rounding_sets_apart_beside_a_target_is_no_change(offset: float, target: float) -> None:
    """As much as it may of what is added to the statistic and taken away from it."""
    work = _Work(MetricSource.mean("v", offset=offset), target, 0.01, 0)
    room = ROUNDED * (abs(offset) + abs(target))
    for moved, told in ((0.9 * room, 0.0), (1.5 * room, 1.5 * room)):
        found = work.tested(np.array([2.0]), np.array([2.0 + moved]))
        assert found == pytest.approx([told], abs=0.2 * room)


def test_what_no_item_shows_is_no_change() -> None:
    same = change(rows(A), rows(A))
    assert same.difference == Estimate(0.0, 0.0, 0.0, n=8, method="paired: every item is the same")
    assert (same.p, same.floor, same.identical, same.pairs, same.error) == (1.0, 1.0, True, 8, None)
    assert same.clusters == 8
    spread = min(A.std(), np.subtract(*np.percentile(A, [75, 25])))
    for size, identical in ((0.99e-3, True), (1.01e-3, False)):
        moved = change(rows(A), rows(A + size * spread))
        assert moved.identical is identical and (moved.p == 1.0) is identical
    alone = A.copy()
    alone[3] += 1.02e-3 * spread
    assert not change(rows(A), rows(alone)).identical
    arithmetic = change(rows(A), rows(A - 0.5e-3 * spread))
    assert arithmetic.difference.value == pytest.approx(-0.5e-3 * spread) and arithmetic.difference.low is None
    assert arithmetic.difference.method == "paired: no item moved by more than a thousandth of the items' spread"
    assert (arithmetic.floor, arithmetic.clusters, arithmetic.pairs, arithmetic.difference.n) == (1.0, 8, 8, 8)


def test_of_one_value_throughout_what_single_precision_rounds_is_no_change() -> None:
    for flat in (np.full(9, -4.0), np.where(np.arange(9) == 2, -4.0, 0.0)):
        for size, identical in ((0.9e-5, True), (1.2e-5, False)):
            moved = flat.copy()
            moved[2] += 4 * size
            assert change(rows(flat), rows(moved)).identical is identical


def test_a_column_beside_the_values_that_moved_is_a_change() -> None:
    source = MetricSource.mean("v", options={"weight": "w"})
    found = change(rows(A, w=[1] * 8), rows(A, w=[2, *[1] * 7]), source)
    assert not found.identical and found.difference.value == pytest.approx((A.sum() + A[0]) / 9 - A.mean())
    same = change(rows(A, w=[1] * 8), rows(A, w=[1] * 8), source)
    assert same.identical and same.difference.method == "paired: every item is the same"
    arithmetic = change(rows(A, w=[1] * 8), rows(A + 1e-5, w=[1] * 8), source)
    assert arithmetic.identical and "thousandth" in (arithmetic.difference.method or "")
    assert not change(rows(A, w=[1] * 8), rows(A + 1e-5, w=[2, *[1] * 7]), source).identical
    # One that the statistic does not read is none.
    assert change(rows(A, w=[1] * 8), rows(A, w=[2, *[1] * 7])).identical


def test_a_statistic_of_an_audits_own_is_another_where_its_rows_are() -> None:
    register_statistic("change_values.mean", lambda some, options: float(np.mean([row["v"] for row in some])))
    source = MetricSource("change_values.mean", "v")
    assert change(rows(A), rows(A), source).identical
    assert change(rows(A, content=["x"] * 8), rows(A), source).identical
    found = change(rows(A), rows(A + 1e-9), source)
    assert not found.identical and found.pairs == 8


def test_half_of_the_items_of_the_smaller_run_are_enough_to_pair() -> None:
    b = rows(A + STEPS)
    for k in range(4, 8):
        b[k]["item"] = f"j{k}"
    found = change(rows(A), b)
    assert (found.basis, found.pairs, found.only_a, found.only_b) == ("paired", 4, 4, 4)
    assert found.difference.value == pytest.approx(STEPS[:4].mean())
    b[3]["item"] = "j3"
    assert change(rows(A), b).basis == "two samples"
    assert change(rows(A), rows(A + STEPS)[:2]).pairs == 2
    assert change(rows(A)[:2], rows(A + STEPS)).only_b == 6


def test_items_of_one_name_that_hold_another_text_are_no_pairs() -> None:
    text = [["x"] * 8, ["y"] * 4 + ["x"] * 4, ["x"] * 3 + ["y"] * 5]
    found = change(rows(A, content=text[0]), rows(A + STEPS, content=text[1]))
    assert (found.pairs, found.others, found.only_a, found.only_b) == (4, 4, 0, 0)
    other = between(rows(A, content=text[0]), rows(A + STEPS, content=text[2]))
    assert other == OtherData(5, 8, "i3")
    # The item that is named is one of them, in whatever order the second run holds them.
    assert between(rows(A, content=text[0]), rows(A + STEPS, content=text[2])[::-1]) == OtherData(5, 8, "i3")
    drawn = change(rows(A, content=text[0]), rows(A + STEPS, content=text[2]), redrawn=True)
    assert (drawn.basis, drawn.pairs, drawn.only_a, drawn.only_b, drawn.others) == ("two samples", 0, 8, 8, 0)


def test_two_samples_have_welchs_t_and_labels_dealt_out_anew() -> None:
    b = np.random.default_rng(5).normal(1.5, 2, 12)
    other = [{**row, "item": f"j{k}"} for k, row in enumerate(rows(b))]
    found = change(rows(A), other, seed=3)
    known = ttest_ind(b, A, equal_var=False)
    interval = known.confidence_interval(0.95)
    assert (found.basis, found.pairs, found.only_a, found.only_b, found.clusters) == ("two samples", 0, 8, 12, 8)
    assert found.difference.value == pytest.approx(b.mean() - A.mean()) and found.df == pytest.approx(known.df)
    assert found.error == pytest.approx((b.var(ddof=1) / 12 + A.var(ddof=1) / 8) ** 0.5)
    assert found.p is not None and found.p >= known.pvalue and found.floor == 1 / 10_001
    assert found.difference.high == pytest.approx(interval.high)
    assert found.difference.method == "two samples, Welch's t on clusters, and their labels permuted"
    assert found.difference.n == 20
    assert change(rows(A), other, seed=3) == found
    few = change(rows(A)[:5], other)
    assert (few.p, few.clusters, few.difference.low) == (None, 5, None)
    scaled = change(rows(A), other, MetricSource.mean("v", scale=100), seed=3)
    assert (scaled.error, scaled.p) == pytest.approx((100 * (found.error or 0), found.p))


def test_two_samples_of_crossed_factors_have_the_t_alone() -> None:
    rng = np.random.default_rng(2)
    r, c = (list(map(str, index.ravel())) for index in np.indices((6, 6)))
    source = MetricSource.mean("v", clusters=("r", "c"))
    b = [{**row, "item": f"j{k}"} for k, row in enumerate(rows(rng.normal(1, 1, 36), r=r, c=c))]
    found = change(rows(rng.normal(size=36), r=r, c=c), b, source)
    assert found.p is not None and found.error is not None and found.df is not None
    assert found.difference.value is not None
    assert found.p == pytest.approx(2 * t.sf(found.difference.value / found.error, found.df)) and found.floor == 0.0


def test_runs_without_a_value_are_not_compared() -> None:
    nothing = rows(np.full(8, np.nan))
    assert between(nothing, rows(A)) == "no row of the first run has a value"
    assert between(rows(A), nothing) == "no row of the second run has a value"
    ratio = MetricSource("ratio", "v", options={"denominator": "d"})
    zero, one = rows(A, d=[0] * 8), rows(A, d=[1] * 8)
    assert between(zero, one, ratio) == "the statistic has no value on the items of both runs"
    apart = [{**row, "item": f"j{k}"} for k, row in enumerate(one)]
    assert between(zero, apart, ratio) == "the statistic has no value in one of the runs"


def told(value: float | None = 0.1, **more: Any) -> Change:
    fields: dict[str, Any] = {"error": 0.05, "df": 10.0, "clusters": 6} | more
    estimate = Estimate(value, note="none")
    return Change(estimate, 0.5, 0.0, "paired", 8, 0, 0, before=0.0, after=0.1, **fields)


def test_a_change_is_smaller_than_a_margin_by_two_one_sided_tests() -> None:
    reach = 0.1 + t.isf(0.05, 10) * 0.05
    for value in (0.1, -0.1):
        assert told(value).within(reach + 1e-9) and not told(value).within(reach - 1e-9)
    for lacking in (told(None), told(error=None), told(df=None), told(clusters=5)):
        assert not lacking.within(9.0)


def test_the_spread_of_a_difference_of_independent_values() -> None:
    found = difference_of(Spread(3.0, 5, 9), Spread(1.0, 10, 7))
    assert (found.variance, found.df, found.clusters) == pytest.approx(
        (4.0, degrees_of_freedom([(0.75, 5), (0.25, 10)]), 7)
    )
    assert difference_of(Spread(0.0, 5, 9), Spread(0.0, 10, 7)) == Spread(0.0, 5.0, 7)
    assert difference_of(Spread(0.0, 5, 9), Spread(2.0, 10, 7)) == Spread(2.0, 10.0, 7)
    assert _error(Spread(4.0, 5, 9)) == {"error": 2.0, "df": 5}
    assert [_error(Spread(v, 5, 9)) for v in (0.0, -1.0, math.nan, math.inf)] == [{}] * 4


def test_the_spread_of_values_is_not_made_by_one_far_out() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 1000.0])
    assert _spread(values) == 2.0
    assert _spread(np.array([0.0, 0.0, 4.0, 4.0])) == 2.0
