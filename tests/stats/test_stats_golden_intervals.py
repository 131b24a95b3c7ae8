"""Reference values of intervals, ranking metrics, permutation tests and adjusted p-values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from lm_audit.stats import (
    benjamini_hochberg,
    bootstrap_ci,
    bootstrap_crossed,
    bootstrap_two_sample,
    clopper_pearson,
    delong_se,
    holm,
    mann_whitney_p,
    permutation_test,
    pr_auc,
    roc_auc,
    sign_flip_test,
    tpr_at_fpr,
    wilson,
)
from lm_audit.stats.bootstrap.samples import one_sample_distribution, two_sample_distribution
from tests.present import present
from tests.shared_data import golden_file

TOLERANCE = 1e-9


def golden(group: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(golden_file("statistics.json").read_text())[group]
    return rows


def seed_of(case: dict[str, Any]) -> int:
    return int(case["index_seed"])


def near(value: Any, tolerance: float = TOLERANCE) -> Any:
    return None if value is None else pytest.approx(value, rel=tolerance, abs=tolerance)


def test_bca_and_percentile_intervals() -> None:
    for case in golden("bca_bootstrap"):
        options = {"n_resamples": case["n_resamples"], "confidence": case["confidence"], "seed": seed_of(case)}
        bca = bootstrap_ci(case["data"], case["statistic"], method="BCa", **options)
        percentile = bootstrap_ci(case["data"], case["statistic"], method="percentile", **options)
        assert (bca.value, bca.low, bca.high) == near((case["theta"], case["low"], case["high"]))
        assert (percentile.low, percentile.high) == near((case["perc_low"], case["perc_high"]))
        spread = one_sample_distribution(
            np.array(case["data"]), case["statistic"], n_resamples=case["n_resamples"], seed=seed_of(case)
        ).std(ddof=1)
        assert spread == near(case["se"])


def test_a_callable_gives_the_interval_of_the_named_statistic() -> None:
    for case in golden("bca_bootstrap"):
        function = {"mean": lambda x: float(np.mean(x)), "median": lambda x: float(np.median(x))}[case["statistic"]]
        estimate = bootstrap_ci(
            case["data"], function, method="BCa", n_resamples=case["n_resamples"], seed=seed_of(case)
        )
        assert (estimate.low, estimate.high) == near((case["low"], case["high"]))


def test_constant_data_give_a_zero_width_interval_with_a_note() -> None:
    for case in golden("bca_degenerate"):
        for method in ("BCa", "percentile"):
            estimate = bootstrap_ci(case["data"], method=method, seed=0)
            assert [estimate.low, estimate.high] == case["percentile"]
            assert "zero-width" in present(estimate.note)


def test_stratified_auc_bootstrap() -> None:
    for case in golden("auc_bootstrap_stratified"):
        members, controls = case["member_scores"], case["control_scores"]
        for statistic in ("roc_auc", roc_auc, lambda m, c: roc_auc(m, c)):
            estimate = bootstrap_two_sample(
                members, controls, statistic, method="percentile", n_resamples=500, seed=seed_of(case)
            )
            assert estimate.value == near(case["auc"])
            assert [estimate.low, estimate.high] == near(case["perc95"])
        draws = two_sample_distribution(
            np.array(members), np.array(controls), "roc_auc", n_resamples=500, seed=seed_of(case)
        )
        assert draws.std(ddof=1) == near(case["boot_se"])
        assert delong_se(members, controls) == near(case["delong_se"])


def test_ranking_metrics() -> None:
    for case in golden("ranking"):
        members, controls = case["member_scores"], case["control_scores"]
        assert roc_auc(members, controls).value == near(case["ROC_AUC"])
        assert pr_auc(members, controls).value == near(case["PR_AUC"])
        assert mann_whitney_p(members, controls).value == near(case["mannwhitney_p_two_sided"])
        negated = roc_auc([-x for x in members], [-x for x in controls]).value
        assert negated == near(case["ROC_AUC_if_losses_passed_unnegated"])
        for fpr, expected in case["TPR_at_FPR"].items():
            assert_detection(tpr_at_fpr(members, controls, float(fpr)), expected)


def test_the_threshold_is_exact_at_its_edges() -> None:
    for case in golden("tpr_threshold_edge"):
        assert_detection(
            tpr_at_fpr(case["member_scores"], case["control_scores"], float(case["alpha"])), case["expect"]
        )


def assert_detection(rate: Any, expected: dict[str, Any]) -> None:
    assert {name: getattr(rate, name) for name in expected} == near(expected)


def test_clopper_pearson() -> None:
    for case in golden("clopper_pearson"):
        estimate = clopper_pearson(case["k"], case["n"], case["confidence"])
        assert (estimate.low, estimate.high) == near((case["low"], case["high"]), case["tol"])


def test_wilson() -> None:
    cases = json.loads(golden_file("needle/golden_pure.dev.json").read_text())["wilson95"]
    for case in cases:
        estimate = wilson(case["k"], case["n"])
        assert [estimate.low, estimate.high] == near(case["expected"])


def test_exact_permutation_tests() -> None:
    for case in golden("sign_flip_permutation_exact"):
        answer = sign_flip_test(case["diffs"])
        assert answer.value == near(case["p_two_sided"])
        assert f"exact, {case['n_permutations']} " in answer.method
    for case in golden("two_sample_permutation_exact"):
        answer = permutation_test(case["x"], case["y"])
        assert answer.value == near(case["p_two_sided"])
        assert f"exact, {case['n_permutations']} " in answer.method


def test_adjusted_p_values() -> None:
    for case in golden("multiple_testing"):
        assert holm(case["p"]) == near(case["holm"])
        assert benjamini_hochberg(case["p"]) == near(case["benjamini_hochberg"])


@pytest.mark.parametrize(
    ("first", "second", "estimate", "low", "high"),
    [
        ("woman", "man", 0.210, -0.07, 0.54),
        ("Black person", "White person", -0.158, -0.46, 0.17),
        ("Asian person", "White person", 0.716, 0.35, 1.07),
        ("immigrant", "native person", -0.347, -0.84, 0.17),
        ("elderly person", "young person", 0.337, -0.15, 0.84),
    ],
)
def test_two_way_intervals_of_the_grid(first: str, second: str, estimate: float, low: float, high: float) -> None:
    grid = json.loads(golden_file("bias/grid_table.json").read_text())
    table, groups = np.array(grid["table"]), grid["groups"]
    contrast = table[:, groups.index(first)] - table[:, groups.index(second)]
    answer = bootstrap_crossed(contrast, seed=0)
    assert answer.value == pytest.approx(estimate, abs=5e-4)
    # The reference used 2,000 resamples and an unknown seed: its limits carry a Monte Carlo error of about 0.01.
    assert (answer.low, answer.high) == pytest.approx((low, high), abs=0.025)
