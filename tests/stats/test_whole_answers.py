"""What every answer says beside its number: of how many, by which method, in which unit, and what good is.

The numbers themselves are held by the golden values; a gate, a finding and a comparison go by what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lm_audit.stats as hs
from lm_audit.errors import UsageError
from lm_audit.stats import Estimate

A = np.array([1.0, 2.5, 0.5, 3.0, 4.5, 2.0, 6.0, 3.5, 1.5, 5.0, 2.2, 3.3])
B = A + np.array([0.5, 0.1, -0.3, 0.9, 1.1, 0.2, -0.4, 0.8, 0.3, 0.6, 0.7, -0.2])
HITS = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0])
LATER = np.array([1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1])
PAIRS = np.arange(12) // 2
TABLE = np.arange(24.0).reshape(6, 4) % 7 + np.arange(24.0).reshape(6, 4) / 10
WIDE = np.sin(np.arange(48.0)).reshape(6, 8)
MEMBERS, CONTROLS = np.linspace(1, 3, 12), np.linspace(0, 2.2, 20)


def mean_gap(a: Any, b: Any, axis: int = -1) -> Any:
    return a.mean(axis=axis) - b.mean(axis=axis)


def of(n: int, method: str, **more: Any) -> dict[str, Any]:
    return {"n": n, "method": method, **more}


BOOTSTRAP = "symmetric bootstrap-t"
SHARE = {"unit": "share", "fewest": 1}
BOUND = {"unit": "epsilon", "better": "lower", "fewest": 1}

WHOLE: dict[str, tuple[Callable[[], Estimate], dict[str, Any]]] = {
    "mean": (lambda: hs.bootstrap_ci(A), of(12, f"mean, {BOOTSTRAP}, B=9999", units=12, fewest=8)),
    "median": (lambda: hs.bootstrap_ci(A, "median"), of(12, "median, order statistics")),
    "of clusters": (
        lambda: hs.bootstrap_clustered(A, PAIRS),
        of(12, f"mean, {BOOTSTRAP}, 6 clusters resampled, B=9999", units=6, fewest=6),
    ),
    "of pairs": (lambda: hs.bootstrap_paired(A, B), of(12, f"mean, {BOOTSTRAP}, B=9999", units=12, fewest=8)),
    "of two samples": (
        lambda: hs.bootstrap_two_sample(A, B[:9], mean_gap),
        of(21, "t with the larger standard error of jackknife and bootstrap, each side resampled", units=9),
    ),
    "bounded": (lambda: hs.bounded_mean(HITS), of(12, "mean, Gaffke's interval for bounded values")),
    "Clopper-Pearson": (lambda: hs.clopper_pearson(3, 20), of(20, "Clopper-Pearson", **SHARE)),
    "Wilson": (lambda: hs.wilson(3, 20), of(20, "Wilson", unit="share")),
    "cluster-robust": (
        lambda: hs.clustered_mean(A, PAIRS),
        of(12, "mean, t over 6 clusters (CR2, Satterthwaite)", units=6, fewest=6),
    ),
    "crossed": (lambda: hs.two_way_mean(WIDE), of(48, "two-way t, 6 rows x 8 columns", units=6, fewest=6)),
    "crossed p": (lambda: hs.two_way_p_value(WIDE), of(48, "two-way t, 6 rows x 8 columns", unit="p")),
    "crossed, within a margin": (
        lambda: hs.crossed_equivalence(TABLE, 5.0),
        of(24, "two-way bootstrap, two one-sided, B=9999", unit="p"),
    ),
    "rows' signs": (lambda: hs.clustered_sign_flip(TABLE).rows, of(6, "sign flip, exact, 64 patterns", unit="p")),
    "columns' signs": (lambda: hs.clustered_sign_flip(TABLE).columns, of(4, "sign flip, exact, 16 patterns", unit="p")),
    "both signs": (lambda: hs.clustered_sign_flip(TABLE).larger, of(6, "clustered sign flip, larger of two", unit="p")),
    "epsilon of rates": (
        lambda: hs.epsilon_from_rates(18, 20, 1, 21, 1e-5),
        of(41, "attack rates, Clopper-Pearson", **BOUND),
    ),
    "epsilon of one run": (lambda: hs.one_run_epsilon(100, 50, 45, 0.0), of(100, "one-run audit", **BOUND)),
    "p of one run": (lambda: hs.one_run_p_value(100, 50, 45, 1.0, 0.0), of(100, "one-run audit", unit="p")),
    "within a margin": (lambda: hs.equivalence_test(B - A, 1.0), of(12, "two one-sided t-tests", unit="p")),
    "exact exposure": (lambda: hs.exposure_exact(3, 1000), of(1000, "exact exposure", unit="bits")),
    "extrapolated exposure": (
        lambda: hs.exposure_extrapolated([1.0, 2.0], np.linspace(0, 3, 60))[1],
        of(60, "extrapolated exposure, skew-normal fit", unit="bits"),
    ),
    "mean exposure": (
        lambda: hs.mean_exposure(MEMBERS, CONTROLS),
        of(12, "mean exposure, canaries by Gaffke's limits, references by the gaps between them", unit="bits",
           better="lower", units=12, chance=pytest.approx(np.mean(np.log2(21) - np.log2(np.arange(1, 22))))),
    ),
    "entropy": (lambda: hs.secret_entropy_bits(8, 10), {"method": "secret entropy", "unit": "bits"}),
    "LiRA with models of both": (
        lambda: hs.lira_online(2.0, MEMBERS, CONTROLS),
        of(32, "LiRA online", unit="nats"),
    ),
    "LiRA without": (lambda: hs.lira_offline(2.0, CONTROLS), of(20, "LiRA offline", unit="nats")),
    "Mann-Whitney": (
        lambda: hs.mann_whitney_p(MEMBERS, CONTROLS),
        of(32, "Mann-Whitney, asymptotic", unit="p"),
    ),
    "McNemar": (lambda: hs.mcnemar_exact(HITS, LATER), of(12, "McNemar, exact", unit="p")),
    "McNemar of clusters": (
        lambda: hs.mcnemar_exact(HITS, LATER, PAIRS),
        of(12, "McNemar, 6 clusters change sides", unit="p"),
    ),
    "of values within bounds": (
        lambda: hs.mean_interval(HITS, bounds=(0, 1)),
        of(12, "Clopper-Pearson", fewest=1),
    ),
    "of two groups, p": (
        lambda: hs.permutation_test(A, B),
        of(24, "two-sample permutation, Monte Carlo, R=9999", unit="p"),
    ),
    "of signs, p": (lambda: hs.sign_flip_test(B - A), of(12, "sign flip, exact, 4096 patterns", unit="p")),
    "average precision": (
        lambda: hs.pr_auc(MEMBERS, CONTROLS),
        of(32, "average precision", unit="AP", units=12, chance=pytest.approx(0.43666, abs=1e-5)),
    ),
    "AUC": (
        lambda: hs.roc_auc(MEMBERS, CONTROLS),
        of(32, "ROC AUC, Wilson interval on DeLong's variance", unit="AUC", units=12, chance=0.5),
    ),
    "share": (lambda: hs.share(HITS), of(12, "Clopper-Pearson", **SHARE)),
    "share of clusters": (
        lambda: hs.share(HITS, PAIRS),
        of(12, "Clopper-Pearson at 7.5 effective answers of 6 clusters (Korn and Graubard)", unit="share", units=6,
           fewest=6),
    ),
    "difference of shares": (
        lambda: hs.share_difference(3, 20, 9, 21),
        of(41, "Newcombe", unit="share", units=20),
    ),
    "difference of means": (
        lambda: hs.studentised_difference(A, B[:9]).difference,
        of(21, "difference of means, bootstrap-t", units=9),
    ),
    "p of a difference of means": (
        lambda: hs.studentised_difference(A, B[:9]).p,
        of(21, "difference of means, bootstrap-t, R=9999", unit="p"),
    ),
    "skewed mean": (lambda: hs.studentised_mean(A), of(12, "mean, bootstrap-t, B=1999")),
    "power": (lambda: hs.power_auc(0.7, n=50), {"method": "power, Hanley-McNeil", "unit": "power"}),
    "size": (lambda: hs.power_auc(0.7, power=0.8), {"method": "power, Hanley-McNeil", "unit": "per group"}),
    "area": (lambda: hs.power_auc(n=50, power=0.8), {"method": "power, Hanley-McNeil", "unit": "AUC"}),
    "pairs": (lambda: hs.power_paired_t(0.5, power=0.8), {"method": "power, paired t-test", "unit": "pairs"}),
    "effect": (lambda: hs.power_paired_t(n=30, power=0.8), {"method": "power, paired t-test", "unit": "d"}),
    "per group": (
        lambda: hs.power_two_sample_t(0.5, power=0.8),
        {"method": "power, two-sample t-test", "unit": "per group"},
    ),
}  # fmt: skip
PLAIN = {"n": None, "unit": None, "better": None, "chance": None, "units": None, "fewest": None}


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_says_of_how_many_how_and_in_what(name: str) -> None:
    ask, said = WHOLE[name]
    found = ask()
    assert {field: getattr(found, field) for field in (*PLAIN, "method")} == PLAIN | said
    assert found.value is not None and found.confidence == (None if found.low is None else 0.95)


CONFIDENT: dict[str, Callable[..., Estimate]] = {
    "mean": lambda **k: hs.bootstrap_ci(A, **k),
    "median": lambda **k: hs.bootstrap_ci(A, "median", **k),
    "of clusters": lambda **k: hs.bootstrap_clustered(A, PAIRS, **k),
    "of two samples": lambda **k: hs.bootstrap_two_sample(A, B, mean_gap, **k),
    "of pairs": lambda **k: hs.bootstrap_paired(A, B, **k),
    "crossed": lambda **k: hs.bootstrap_crossed(WIDE, **k),
    "bounded": lambda **k: hs.bounded_mean(HITS / 2, **k),
    "Clopper-Pearson": lambda **k: hs.clopper_pearson(3, 20, **k),
    "Wilson": lambda **k: hs.wilson(3, 20, **k),
    "cluster-robust": lambda **k: hs.clustered_mean(A, PAIRS, **k),
    "two-way": lambda **k: hs.two_way_mean(WIDE, **k),
    "contrast": lambda **k: hs.crossed_contrast(WIDE, **k).difference,
    "independent": lambda **k: hs.compare_independent(A, B, **k).difference,
    "paired": lambda **k: hs.compare_paired(A, B, **k).difference,
    "paired shares": lambda **k: hs.compare_paired(HITS, LATER, **k).difference,
    "epsilon of rates": lambda **k: hs.epsilon_from_rates(18, 20, 1, 20, 1e-5, **k),
    "epsilon of one run": lambda **k: hs.one_run_epsilon(100, 50, 45, 0.0, **k),
    "exposure": lambda **k: hs.mean_exposure(MEMBERS, CONTROLS, **k),
    "AUC": lambda **k: hs.roc_auc(MEMBERS, CONTROLS, **k),
    "within bounds": lambda **k: hs.mean_interval(HITS, bounds=(0, 1), **k),
    "interval": lambda **k: hs.mean_interval(A, **k),
    "interval of clusters": lambda **k: hs.mean_interval(A, PAIRS, **k),
    "share": lambda **k: hs.share(HITS, **k),
    "share of clusters": lambda **k: hs.share(HITS, PAIRS, **k),
    "difference of shares": lambda **k: hs.share_difference(3, 20, 9, 21, **k),
    "difference of means": lambda **k: hs.studentised_difference(A, B, **k).difference,
    "skewed mean": lambda **k: hs.studentised_mean(A, **k),
}


@pytest.mark.parametrize("name", CONFIDENT)
def test_what_is_less_sure_is_narrower_and_says_how_sure(name: str) -> None:
    usual, ninety_five, eighty = (CONFIDENT[name](**k) for k in ({}, {"confidence": 0.95}, {"confidence": 0.8}))
    assert usual == ninety_five and (usual.confidence, eighty.confidence) == (0.95, 0.8)
    assert usual.low is not None and eighty.low is not None and usual.low < eighty.low
    if usual.high is not None:  # a bound of epsilon has one side
        assert eighty.high is not None and eighty.high < usual.high


@pytest.mark.parametrize("confidence", [0.0, 1.0, 1.5, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", CONFIDENT)
def test_no_interval_is_as_sure_as_that(name: str, confidence: float) -> None:
    with pytest.raises(UsageError, match="confidence"):
        CONFIDENT[name](confidence=confidence)
