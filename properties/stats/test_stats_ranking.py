"""Symmetries of ranking metrics, and their agreement with scipy and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu
from sklearn.metrics import average_precision_score, roc_auc_score

from lm_audit.stats import bootstrap_two_sample, delong_se, pr_auc, roc_auc, tpr_at_fpr, tpr_statistic
from tests.present import present

# Few distinct whole numbers give many ties; floats give none.
SCORES = st.one_of(
    st.lists(st.integers(-4, 4), min_size=1, max_size=30),
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30),
).map(lambda xs: np.array(xs, dtype=np.float64))
INCREASING: tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], ...] = (
    lambda x: x**3,
    lambda x: 2.0**-3 * x + 7,
    lambda x: np.exp(x / 100),
)
FPRS = st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.29, 0.5, 1.0])


def labelled(
    members: NDArray[np.float64], controls: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.repeat([1, 0], [len(members), len(controls)]), np.concatenate([members, controls])


@given(SCORES, SCORES)
def test_auc_and_its_mirror_sum_to_one(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    assert present(roc_auc(members, controls).value) + present(roc_auc(controls, members).value) == pytest.approx(
        1, abs=1e-12
    )


@given(SCORES, SCORES)
def test_auc_is_mann_whitney_u_and_scikit_learns(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    value = roc_auc(members, controls).value
    assert value == pytest.approx(mannwhitneyu(members, controls).statistic / (len(members) * len(controls)), abs=1e-12)
    assert value == pytest.approx(roc_auc_score(*labelled(members, controls)), abs=1e-12)


@given(SCORES, SCORES)
def test_average_precision_is_scikit_learns(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    assert pr_auc(members, controls).value == pytest.approx(
        average_precision_score(*labelled(members, controls)), abs=1e-12
    )


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30), st.data())
def test_increasing_maps_change_nothing(members: list[int], data: st.DataObject) -> None:
    controls = data.draw(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30))
    for function in INCREASING:
        mapped = [function(np.array(side, dtype=np.float64)) for side in (members, controls)]
        assert roc_auc(*mapped).value == roc_auc(members, controls).value
        assert pr_auc(*mapped).value == pr_auc(members, controls).value


@given(SCORES, SCORES)
def test_groups_apart_have_auc_one(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    apart = members - members.min() + 1, controls - controls.max()
    assert roc_auc(*apart).value == 1
    found = roc_auc(*apart)
    assert found.low is None if min(map(len, apart)) < 8 else 0.5 < present(found.low) < present(found.high) == 1
    assert pr_auc(*apart).value == 1
    assert tpr_at_fpr(*apart, 0.01).tpr == 1


@given(SCORES, st.randoms())
def test_identical_multisets_have_auc_one_half(scores: NDArray[np.float64], random: Random) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    assert roc_auc(scores, shuffled).value == pytest.approx(0.5, abs=1e-12)


@given(SCORES, SCORES)
def test_the_interval_holds_the_auc(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    estimate = roc_auc(members, controls)
    if estimate.low is not None:
        assert 0 <= present(estimate.low) <= present(estimate.value) <= present(estimate.high) <= 1
        assert delong_se(members, controls) == pytest.approx(delong_se(controls, members), abs=1e-12)


@given(SCORES, SCORES, FPRS)
def test_realised_fpr_never_exceeds_the_asked(
    members: NDArray[np.float64], controls: NDArray[np.float64], fpr: float
) -> None:
    rate = tpr_at_fpr(members, controls, fpr)
    assert present(rate.realised_fpr) <= fpr
    assert present(rate.low) <= present(rate.tpr) <= present(rate.high)
    assert rate.tpr == float(tpr_statistic(fpr)(members, controls))
    if rate.threshold is not None:
        assert rate.n_detected == sum(score > rate.threshold for score in members)


@given(SCORES, SCORES)
def test_the_rate_grows_with_the_fpr(members: NDArray[np.float64], controls: NDArray[np.float64]) -> None:
    rates = [present(tpr_at_fpr(members, controls, fpr).tpr) for fpr in (0, 0.01, 0.05, 0.1, 0.5, 1)]
    assert rates == sorted(rates) and rates[-1] == 1


@given(st.integers(1, 999), st.integers(1, 60))
def test_allowed_false_positives_are_counted_in_decimal(thousandths: int, scale: int) -> None:
    n = 1000 * scale // 10
    rate = tpr_at_fpr([0.0], np.arange(n), thousandths / 1000)
    assert rate.allowed_fp == thousandths * n // 1000


@given(SCORES, SCORES, st.integers(0, 99))
def test_the_bootstrap_of_a_rate_takes_all_resamples_at_once(
    members: NDArray[np.float64], controls: NDArray[np.float64], seed: int
) -> None:
    fast = bootstrap_two_sample(members, controls, tpr_statistic(0.1), n_resamples=29, seed=seed)
    slow = bootstrap_two_sample(members, controls, lambda m, c: tpr_at_fpr(m, c, 0.1).tpr, n_resamples=29, seed=seed)
    assert fast == slow
