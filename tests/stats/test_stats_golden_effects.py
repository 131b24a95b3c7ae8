"""Reference values of effect sizes, exposure, epsilon bounds, LiRA, power, decisions and the bias grid."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lm_audit.stats import (
    clopper_pearson,
    clustered_sign_flip,
    crossed_contrast,
    decide,
    epsilon_from_rates,
    exposure_exact,
    exposure_extrapolated,
    exposure_sampled,
    fit_skew_normal,
    grid_mean_squares,
    holm,
    lira_offline,
    lira_online,
    max_min,
    max_min_permutation,
    one_run_epsilon,
    one_run_p_value,
    paired_effect,
    power_auc,
    power_paired_t,
    power_two_sample_t,
    secret_entropy_bits,
)
from tests.present import present
from tests.shared_data import golden_file
from tests.stats.test_stats_golden_intervals import golden, near


def test_paired_effects() -> None:
    for case in golden("paired_effect"):
        effect = asdict(paired_effect(case["a"], case["b"]))
        for name in case.keys() - {"a", "b", "direction", "paired_test"}:
            assert effect[name] == near(case[name]), name
        for part in ("direction", "paired_test"):
            assert (effect[part] is None) == (case[part] is None)
            for name, expected in (case[part] or {}).items():
                assert effect[part][name] == near(expected), name


def test_d_av_divides_by_the_mean_of_both_standard_deviations() -> None:
    a, b = np.array([1.0, 2.0, 4.0]), np.array([2.0, 5.0, 9.0])
    expected = (b - a).mean() / ((a.std(ddof=1) + b.std(ddof=1)) / 2)
    assert paired_effect(a, b).d_av == near(expected)


def test_exact_exposure_and_entropy() -> None:
    for case in golden("exposure_exact"):
        assert exposure_exact(case["rank"], case["space_size"]).value == near(case["exposure"])
    for case in golden("secret_entropy_bits"):
        assert secret_entropy_bits(case["length"], case["alphabet"]).value == near(case["bits"])


def test_sampled_exposure() -> None:
    for case in golden("exposure_sampled"):
        answers = exposure_sampled(case["canary_losses"], case["reference_losses"])
        for answer, expected in zip(answers, case["expect"], strict=True):
            assert {name: getattr(answer, name) for name in expected} == near(expected)


def test_extrapolated_exposure() -> None:
    for case in golden("exposure_sampled"):
        answers = [e.value for e in exposure_extrapolated(case["canary_losses"], case["reference_losses"])]
        if case["extrapolated"] is None:
            assert answers == [None] * len(answers)
        else:
            assert fit_skew_normal(np.array(case["reference_losses"])) == near(tuple(case["skewnorm_fit"]), 0.02)
            assert answers == near(case["extrapolated"], 0.02)


def test_one_run_bounds() -> None:
    for case in golden("one_run_epsilon"):
        bound = one_run_epsilon(case["m"], case["r"], case["v"], case["delta"], 1 - case["p"])
        assert bound.value == near(case["eps_lower"], case["tol"])
        if case["published"] is not None:
            assert bound.value == pytest.approx(case["published"], abs=1e-3)
    for case in golden("one_run_p_value"):
        answer = one_run_p_value(case["m"], case["r"], case["v"], case["eps"], case["delta"])
        assert answer.value == near(case["p"])


def test_epsilon_from_rates() -> None:
    for case in golden("epsilon_from_rates"):
        bound = epsilon_from_rates(
            case["tp"], case["n_member"], case["fp"], case["n_control"], case["delta"], case["confidence"]
        )
        assert bound.value == near(case["eps_lower"])
        hits = clopper_pearson(case["tp"], case["n_member"], case["confidence"])
        false = clopper_pearson(case["fp"], case["n_control"], case["confidence"])
        assert (hits.low, false.high) == near((case["tpr_low"], case["fpr_high"]))


def test_likelihood_ratios() -> None:
    for case in golden("lira"):
        online = lira_online(case["observed"], case["in_scores"], case["out_scores"])
        assert online.value == near(case["online"])
        assert lira_offline(case["observed"], case["out_scores"]).value == near(case["offline"])


def test_power_of_t_tests() -> None:
    for case in golden("power_paired_t"):
        options = {"level": case["alpha"], "power": case["power"]}
        answer = power_paired_t(case["d_z"], **options)
        assert answer.value == case["n_canaries"]
        assert float(present(answer.note).removeprefix("exact root ")) == near(case["n_exact"])
        assert power_two_sample_t(case["d_z"], **options).value == case["n_per_group_two_sample"]


def test_power_of_auc() -> None:
    for case in golden("power_auc"):
        options = {"level": case["alpha"], "power": case["power"]}
        assert power_auc(case["auc"], **options).value == case["n_per_group"]
        assert power_auc(n=case["n_per_group"], **options).value <= case["auc"]
        assert power_auc(n=case["n_per_group"] - 1, **options).value > case["auc"]


def test_detectable_effects_that_the_privacy_specification_states() -> None:
    assert power_paired_t(n=50).value == pytest.approx(0.40, abs=0.005)
    assert power_paired_t(n=50, level=0.05 / 11).value == pytest.approx(0.54, abs=0.005)
    assert [power_paired_t(d).value for d in (0.2, 0.5, 0.8)] == [199, 34, 15]


def test_decisions() -> None:
    for case in golden("decision"):
        decision = decide(case["ci_low"], case["ci_high"], case["effect"])
        for name in ("statistically_significant", "practically_significant", "category"):
            assert getattr(decision, name) == case[name]


def grid() -> tuple[np.ndarray, list[str]]:
    """Values (groups, templates, pairs) of the nine named groups, and their names."""
    stored = json.loads(golden_file("bias/grid_table.json").read_text())
    names = json.loads(golden_file("bias/stats_all.json").read_text())["groups"]
    table = np.array(stored["table"]).transpose(1, 0, 2)
    return table[[stored["groups"].index(name) for name in names]], names


def test_clustered_sign_flips_of_the_grid_with_holm() -> None:
    values, names = grid()
    reference = json.loads(golden_file("bias/stats_all.json").read_text())
    pairs = list(combinations(range(len(names)), 2))
    flips = [clustered_sign_flip(values[i] - values[j]) for i, j in pairs]
    for side, group in (("rows", "template_signflip"), ("columns", "pair_signflip")):
        raw = [getattr(flip, side).value for flip in flips]
        for (i, j), p, adjusted in zip(pairs, raw, holm(raw), strict=True):
            expected = reference[group][f"{names[i]}|{names[j]}"]
            assert p == near(expected[-2])
            assert adjusted == pytest.approx(expected[-1], abs=1e-6)
            if len(expected) == 3:
                assert (values[i] - values[j]).mean() == pytest.approx(expected[0], abs=1e-6)
    assert all(flip.larger.value == max(present(flip.rows.value), present(flip.columns.value)) for flip in flips)


def test_axis_contrasts_of_the_grid() -> None:
    values, names = grid()
    reference: dict[str, Any] = json.loads(golden_file("bias/axis_contrasts.json").read_text())
    checked = 0
    for key, expected in reference.items():
        kind, _, contrast = key.partition(":")
        if kind != "full":
            continue
        first, second = (values[names.index(name)] for name in contrast.split("|"))
        answer = crossed_contrast(first, second, seed=0)
        assert answer.difference.value == pytest.approx(expected["est"], abs=1e-6)
        assert answer.sign_flip.rows.value == near(expected["p_template"])
        assert answer.sign_flip.columns.value == near(expected["p_pair"])
        # The two-way p and the two-way interval come from the same resamples.
        significant = present(answer.difference.low) > 0 or present(answer.difference.high) < 0
        assert significant == (present(answer.two_way.value) < 0.05)
        checked += 1
    assert checked >= 5


def test_max_min_disparity_of_the_grid() -> None:
    values, _ = grid()
    reference = json.loads(golden_file("bias/stats_all.json").read_text())
    assert max_min(values) == pytest.approx(reference["maxmin"], abs=1e-5)
    assert grid_mean_squares(values) == pytest.approx(reference["var_components"], rel=1e-6)
    answer = max_min_permutation(values, seed=0)
    assert "within templates p = 0.0001" in present(answer.note)
    assert answer.value == pytest.approx(1e-4, abs=3e-4)
