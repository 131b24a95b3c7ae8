"""What the statistics answer where there is little or nothing to estimate, and which mistakes of a caller they name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm, t

import lm_audit.stats as hs
from lm_audit.errors import UsageError
from lm_audit.stats.degrees_of_freedom import degrees_of_freedom
from lm_audit.stats.means.order_statistics import median_interval
from lm_audit.stats.means.skewed import growth, skewness
from lm_audit.stats.ranking.average_precision import pr_interval
from tests.present import present


def test_importing_the_package_loads_neither_numpy_nor_scipy() -> None:
    code = "import sys, lm_audit.stats; print(sorted({'numpy', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(hs, name) is not None for name in hs.__all__)
    with pytest.raises(AttributeError, match="no attribute 'bootstrap_it'"):
        hs.bootstrap_it  # type: ignore[attr-defined]  # noqa: B018


def test_reasons_name_the_value_and_its_place() -> None:
    assert hs.bootstrap_ci([1.0, float("nan"), 2.0], seed=0).note == (
        "data holds nan at index 1 (1 of 3 values not finite)"
    )
    assert hs.wilson(0, 0).note == "n is 0: no share"
    assert hs.wilson(5, 3).note == "k is 5, must lie between 0 and 3"
    assert "at (0, 1)" in present(hs.bootstrap_crossed([[1.0, float("inf")], [0.0, 1.0]], seed=0).note)


def test_one_value_has_a_value_but_no_interval() -> None:
    for estimate in (
        hs.bootstrap_ci([3.0], seed=0),
        hs.bootstrap_clustered([2.0, 4.0], ["a", "a"], seed=0),
        hs.bootstrap_crossed([[2.0, 4.0]], seed=0),
        hs.bootstrap_two_sample([4.0], [1.0, 1.0], "mean_difference", seed=0),
    ):
        assert (estimate.value, estimate.low, estimate.high) == (3.0, None, None)
        assert "no interval" in present(estimate.note)


def test_few_values_have_no_interval_and_one_by_name_carries_a_warning() -> None:
    few, eight = [1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 5.0, 9.0, 4.0, 4.5, 6.0]
    for statistic in ("mean", "median", lambda x: float(np.mean(x))):
        estimate = hs.bootstrap_ci(few, statistic, seed=0)
        assert estimate.value is not None and estimate.low is None
        assert estimate.note == "4 values give no interval, 8 do"
        assert hs.bootstrap_ci(eight, statistic, seed=0).low is not None
    assert "only 4 values" in present(hs.bootstrap_ci(few, method="BCa", seed=0).note)
    assert hs.bootstrap_ci(eight, method="BCa", seed=0).note is None
    assert hs.bootstrap_two_sample(few, eight, "mean_difference", seed=0).low is None
    assert "only 4 values" in present(hs.bootstrap_two_sample(few, eight, "roc_auc", method="percentile", seed=0).note)
    clusters = hs.bootstrap_clustered(np.arange(10.0), [k // 2 for k in range(10)], seed=0)
    assert clusters.low is None and clusters.note == "5 clusters give no interval, 6 do"


def test_without_a_method_each_statistic_has_the_interval_that_covers_it_best() -> None:
    rng = np.random.default_rng(0)
    values, others = rng.exponential(size=24), rng.normal(size=40)
    assert hs.bootstrap_ci(values, seed=1) == hs.mean_interval(values, seed=1)
    assert hs.bootstrap_ci(values, "median", seed=1) == median_interval(values)
    found = hs.studentised_difference(values, others, seed=1)
    assert hs.bootstrap_two_sample(values, others, "mean_difference", seed=1) == found.difference
    assert hs.bootstrap_two_sample(values, others, "roc_auc", seed=1) == hs.roc_auc(values, others)
    average = pr_interval(values, others, n_resamples=99, seed=1)
    assert hs.bootstrap_two_sample(values, others, hs.pr_auc, n_resamples=99, seed=1) == average
    assert hs.bootstrap_ci(values, lambda x: float(np.ptp(x)), n_resamples=199, seed=1).method.startswith("t with")


def test_two_runs_on_different_items_have_a_p_value_that_agrees_with_the_interval() -> None:
    rng = np.random.default_rng(3)
    for shift in (0.0, 1.0, 1.5, 2.0, 2.5):
        found = hs.compare_independent(rng.normal(size=60), 3 * rng.normal(shift, 1, 12), seed=0)
        assert (present(found.test.value) < 0.05) is not (
            present(found.difference.low) <= 0 <= present(found.difference.high)
        )


def test_values_that_never_differ_have_no_width_to_decide_by() -> None:
    same = np.full(20, 3.0)
    for estimate in (
        hs.mean_interval(same, seed=0),
        hs.mean_interval(same, [k // 2 for k in range(20)], seed=0),
        hs.bootstrap_ci(same, seed=0),
        hs.bootstrap_clustered(same, [k // 2 for k in range(20)], seed=0),
        hs.bootstrap_two_sample(same, same, "mean_difference", seed=0),
        hs.roc_auc(same, same),
    ):
        assert estimate.value is not None and estimate.low is None and "no interval" in present(estimate.note)


def test_shares_have_exact_limits_at_any_size() -> None:
    for k, n in ((0, 3), (0, 20), (7, 20)):
        values, exact = np.repeat([1.0, 0.0], [k, n - k]), hs.clopper_pearson(k, n)
        for found in (hs.mean_interval(values, seed=0), hs.bootstrap_ci(values, seed=0)):
            assert (found.value, found.low, found.high) == pytest.approx((k / n, exact.low, exact.high))
    percent = hs.mean_interval(np.zeros(60), [k // 10 for k in range(60)], bounds=(0.0, 100.0), seed=0)
    assert (percent.low, percent.high) == pytest.approx((0.0, 100 * present(hs.clopper_pearson(0, 6).high)))
    assert "6 clusters" in percent.method


def test_pairs_in_clusters_change_sides_together() -> None:
    a, b = np.zeros(40), np.repeat([1.0, 0.0], [25, 15])
    clusters = [k // 5 for k in range(40)]
    assert hs.mcnemar_exact(a, b).value == pytest.approx(2 * 0.5**25)
    assert hs.mcnemar_exact(a, b, clusters).value == 2 * 0.5**5
    assert hs.mcnemar_exact(a, a, clusters).value == 1.0
    with pytest.raises(UsageError, match="40 pairs and 2 cluster labels"):
        hs.mcnemar_exact(a, b, [0, 1])


def test_chance_of_average_precision_is_the_mean_of_random_orders() -> None:
    rng = np.random.default_rng(4)
    chance = hs.pr_auc(rng.normal(size=15), rng.normal(size=200)).chance
    assert chance == pytest.approx(0.091, abs=5e-4)
    drawn = [present(hs.pr_auc(rng.normal(size=4), rng.normal(size=9)).value) for _ in range(4000)]
    assert hs.pr_auc([1.0] * 4, [0.0] * 9).chance == pytest.approx(np.mean(drawn), abs=0.01)


def test_bca_falls_back_to_percentiles_and_says_so() -> None:
    data = [0.0] * 9 + [1.0]
    bca, percentile = (
        hs.bootstrap_ci(data, "median", method=m, n_resamples=4999, seed=3) for m in ("BCa", "percentile")
    )
    assert (bca.low, bca.high) == (percentile.low, percentile.high)
    assert "percentile limits" in present(bca.note)


def test_resamples_without_a_value_are_left_out_and_counted() -> None:
    estimate = hs.bootstrap_ci([0.0, 1.0, 1.0, 1.0, 2.0], lambda x: 1 / x.min(), method="percentile", seed=0)
    assert estimate.value is None
    estimate = hs.bootstrap_ci([1.0, 2.0, 3.0, 4.0, 5.0], lambda x: x.mean() if x.min() > 1 else None, seed=0)
    assert estimate.value is None
    data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    estimate = hs.bootstrap_ci(data, lambda x: x.mean() if x.max() > 7 else None, seed=0)
    assert estimate.low is None and estimate.note == "without one of the units there is no value: no interval"
    for method in (None, "BCa"):
        estimate = hs.bootstrap_ci(data, lambda x: x.mean() if x.max() > 6 else None, method=method, seed=0)
        assert estimate.low is not None and "resamples had no finite value and were left out" in present(estimate.note)


def test_the_range_of_floats_is_no_limit() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0, 6.5])
    huge, plain = hs.bootstrap_ci(values * 2.0**1020, seed=0), hs.bootstrap_ci(values, seed=0)
    assert (huge.low, huge.high) == (present(plain.low) * 2.0**1020, present(plain.high) * 2.0**1020)
    assert hs.paired_effect([1e-320, 2e-320, 4e-320], [2e-320, 3e-320, 4e-320]).d_z == pytest.approx(
        2 / 3**0.5, rel=1e-3
    )


def test_a_rounded_constant_shift_is_a_spread_of_zero() -> None:
    a = np.array([0.1, 0.2, 0.3, 0.7])
    effect = hs.paired_effect(a, a + 0.1)
    assert effect.d_z is None and effect.d_s is not None
    assert hs.equivalence_test(np.full(7, 0.1), 0.2).value == 0
    assert hs.equivalence_test(np.full(7, 0.1), 0.1).value == 1


def test_perfect_separation_is_no_proof_of_an_auc_of_one() -> None:
    estimate = hs.roc_auc([2.0, 3.0], [0.0, 1.0])
    assert (estimate.value, estimate.low) == (1.0, None) and "8 do" in present(estimate.note)
    found = [hs.roc_auc(np.arange(n) + 500.0, np.arange(n)) for n in (8, 24, 200)]
    assert all(e.value == 1.0 and e.high == pytest.approx(1.0) for e in found)
    assert 0.5 < present(found[0].low) < present(found[1].low) < present(found[2].low) < 1


def test_a_rate_at_a_limited_fpr_knows_that_its_threshold_is_a_sample() -> None:
    rng = np.random.default_rng(0)
    members, controls = rng.normal(1.5, size=50), rng.normal(size=200)
    rate = hs.tpr_at_fpr(members, controls, 0.05)
    given = hs.clopper_pearson(present(rate.n_detected), 50)
    low, high = present(given.low), present(given.high)
    assert present(rate.low) <= low and high <= present(rate.high)
    assert present(rate.high) - present(rate.low) > high - low
    # The same limits drawn: of 200 controls so many lie above the true threshold, which is next to either neighbour.
    ordered, above = np.sort(controls)[::-1], rng.binomial(200, 0.05, 200_000)
    found = (members[None, :] > ordered[:, None]).sum(axis=1)[np.maximum(above - rng.integers(0, 2, len(above)), 0)]
    assert rate.low == pytest.approx(np.quantile(rng.beta(found, 51 - found), 0.025), abs=0.004)
    assert rate.high == pytest.approx(np.quantile(rng.beta(found + 1, 50 - found), 0.975), abs=0.004)


@pytest.mark.parametrize(("fpr", "controls"), [("0.001", 1000), ("0.01", 200)])
def test_a_threshold_may_lie_beyond_all_controls(fpr: str, controls: int) -> None:
    """200 members at a shift of 3: limits at the thresholds that were seen cover 82 % and 90 %."""
    rng, true = np.random.default_rng(controls), norm.sf(norm.ppf(1 - float(fpr)) - 3)
    held = 0
    for _ in range(300):
        found = hs.tpr_at_fpr(rng.normal(3, size=200), rng.normal(size=controls), fpr)
        held += present(found.low) <= true <= present(found.high)
    assert held / 300 >= 0.93


def test_every_control_may_be_a_false_positive() -> None:
    rate = hs.tpr_at_fpr([0.0], [1.0, 2.0], 1.0)
    assert (rate.tpr, rate.threshold, rate.realised_fpr) == (1.0, None, 1.0)


def test_far_tails_of_extrapolated_exposure_are_finite_and_grow() -> None:
    references = np.random.default_rng(0).gamma(5, size=200)
    near, far, farther = (present(e.value) for e in hs.exposure_extrapolated([0.0, -50.0, -500.0], references))
    assert 0 < near < far < farther < float("inf")


def test_the_ceiling_of_a_one_run_audit_is_stated() -> None:
    assert "all right would show 2.018" in present(hs.one_run_epsilon(24, 24, 20, 0.0).note)


def test_run_comparison_is_b_minus_a() -> None:
    a, b = np.arange(12.0), np.arange(12.0) + 1 + np.tile([0.0, 0.5], 6)
    assert hs.compare_paired(a, b, seed=0).difference.value == pytest.approx(1.25)
    assert hs.compare_paired(a, b, seed=0).test.value == 2 / 2**12
    assert hs.compare_independent(a, b, seed=0).difference.value == pytest.approx(1.25)


def test_within_margin_is_tri_state() -> None:
    assert hs.within_margin(-0.1, 0.1, 0.2) is True
    assert hs.within_margin(-0.1, 0.2, 0.2) is False
    assert hs.within_margin(None, 0.1, 0.2) is None


def test_many_values_take_bounded_memory() -> None:
    data = np.random.default_rng(0).normal(size=60_000)
    estimate = hs.bootstrap_ci(data, n_resamples=99, seed=0)
    assert present(estimate.high) - present(estimate.low) == pytest.approx(2 * 1.96 / len(data) ** 0.5, rel=0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hs.bootstrap_ci([1.0], method="t", seed=0), "interval method is 't', must be one of BCa, percentile"),
        (
            lambda: hs.bootstrap_ci([1.0], "mode", seed=0),
            "statistic is 'mode', must be a callable or one of mean, median",
        ),
        (lambda: hs.bootstrap_ci([1.0], confidence=95, seed=0), "confidence is 95, must lie strictly between 0 and 1"),
        (lambda: hs.bootstrap_ci([1.0, 2.0], n_resamples=0, seed=0), "n_resamples must be at least 1"),
        (lambda: hs.bootstrap_ci([[1.0]], seed=0), r"data has shape \(1, 1\)"),
        (lambda: hs.bootstrap_crossed([[1.0]], method="BCa", seed=0), "percentile limits only"),
        (lambda: hs.bootstrap_clustered([1.0], [1, 2], seed=0), "values has 1 elements, clusters has 2 labels"),
        (lambda: hs.paired_effect([1.0], [1.0, 2.0]), "a has 1, b has 2"),
        (lambda: hs.tpr_at_fpr([1.0], [1.0], 5), "fpr is 5, must lie between 0 and 1"),
        (lambda: hs.power_paired_t(), "give the effect"),
        (lambda: hs.power_auc(0.7, n=10, power=0.8), "nothing is left to solve for"),
    ],
)
def test_a_callers_mistake_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_a_small_table_has_the_two_way_t_and_a_smaller_one_nothing() -> None:
    rng = np.random.default_rng(1)
    cells = 2 + rng.normal(size=(7, 1)) + rng.normal(size=(1, 12)) + rng.normal(size=(7, 12))
    contrast = hs.crossed_contrast(cells, seed=0)
    assert contrast.difference == hs.bootstrap_crossed(cells, seed=0)
    assert "two-way t" in contrast.difference.method and present(contrast.difference.low) > 0
    assert (present(contrast.two_way.value) < 0.05) == (present(contrast.difference.low) > 0)
    for table in (cells[:5], cells[:, :4]):
        contrast = hs.crossed_contrast(table, seed=0)
        assert contrast.difference.value is not None and contrast.difference.low is None
        assert contrast.two_way.value is None and "no interval, 6 rows and columns" in present(contrast.two_way.note)
    assert hs.crossed_contrast(np.ones((7, 7)), seed=0).two_way.value is None


def test_a_statistic_of_ones_own_has_students_limits_and_more_of_them_on_the_longer_side() -> None:
    even, skewed, others = np.linspace(-1, 1, 12), np.linspace(0, 1, 12) ** 4, np.linspace(-1, 1, 30)
    found = hs.bootstrap_ci(even, lambda x: float(x.mean()), seed=4)
    drawn = even[np.random.default_rng(4).integers(0, 12, (799, 12))].mean(axis=1).std(ddof=1) * (12 / 11) ** 0.5
    half = t.isf(0.025, 11) * max(even.std(ddof=1) / 12**0.5, drawn)
    assert (found.low, found.high) == pytest.approx((-half, half)) and found.n == 12
    apart = hs.bootstrap_two_sample(even, others, lambda a, b: float(a.mean() - b.mean()), seed=4)
    parts = even.var(ddof=1) / 12, others.var(ddof=1) / 30
    freedom = degrees_of_freedom([(parts[0], 11), (parts[1], 29)])
    assert present(apart.high) >= t.isf(0.025, freedom) * sum(parts) ** 0.5
    assert present(apart.high) == pytest.approx(t.isf(0.025, freedom) * sum(parts) ** 0.5, rel=0.1)
    for sign in (1, -1):
        found = hs.bootstrap_ci(sign * skewed, lambda x: float(x.mean()), seed=4)
        sides = (present(found.value) - present(found.low), present(found.high) - present(found.value))[::sign]
        down, up = growth(skewness(skewed), 12, spared=0.25)
        assert down == 1 and sides[1] / sides[0] == pytest.approx(up)
    assert found.note is None
    hidden = hs.bootstrap_ci(np.linspace(0, 1, 12) ** 16, np.std, seed=4)
    assert "strongly skewed" in present(hidden.note) and hidden.high is not None
    assert hs.bootstrap_ci(np.linspace(0, 1, 60) ** 16, np.std, seed=4).note is None


def test_gains_of_one_are_no_yes_no_answers() -> None:
    before, after = [0.0] * 20, [1.0] * 5 + [0.0] * 15
    gained, lost = hs.compare_paired(before, after).difference, hs.compare_paired(after, before).difference
    assert gained.low is not None and gained.high is not None
    assert (gained.low, gained.high) == pytest.approx((-(lost.high or 0.0), -(lost.low or 0.0)))
    assert hs.compare_paired([0.0] * 8, [1.0] + [0.0] * 7).difference.low is None
