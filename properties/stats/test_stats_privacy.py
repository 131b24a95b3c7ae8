"""Exposure, epsilon bounds, likelihood ratios and sample sizes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import skewnorm

from lm_audit.stats import (
    epsilon_from_rates,
    exposure_exact,
    exposure_extrapolated,
    exposure_sampled,
    lira_offline,
    lira_online,
    one_run_epsilon,
    one_run_p_value,
    power_auc,
    power_paired_t,
)
from lm_audit.stats.leaks.exposure import _log_cdf
from tests.present import present

LOSSES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(LOSSES, LOSSES)
def test_sampled_exposure_lies_between_zero_and_its_cap(canaries: list[float], references: list[float]) -> None:
    for answer in exposure_sampled(canaries, references):
        assert 0 <= present(answer.exposure) <= present(answer.max_exposure) == math.log2(len(references) + 1)
        assert present(answer.exposure_tfp) < present(answer.exposure)


@given(LOSSES, LOSSES)
def test_a_lower_loss_is_never_less_exposed(canaries: list[float], references: list[float]) -> None:
    ordered = [present(answer.exposure) for answer in exposure_sampled(sorted(canaries), references)]
    assert ordered == sorted(ordered, reverse=True)


@given(st.integers(1, 2**60), st.data())
def test_exact_exposure_lies_between_zero_and_its_cap(space: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, space))
    assert 0 <= present(exposure_exact(rank, space).value) <= math.log2(space)
    assert exposure_exact(space, space).value == 0


@given(st.integers(0, 99))
@settings(max_examples=5)
def test_extrapolated_exposure_falls_with_the_loss(seed: int) -> None:
    references = np.random.default_rng(seed).gamma(4, size=60)
    losses = [-30.0, -3.0, 0.0, 1.0, 4.0, 9.0, 100.0]
    bits = [present(answer.value) for answer in exposure_extrapolated(losses, references)]
    assert all(a > b for a, b in pairwise(bits)) and bits[-1] >= 0


@given(st.floats(-5, 5), st.floats(-12, -5))
@settings(max_examples=30)
def test_the_skew_normal_tail_joins_its_derivative(shape: float, x: float) -> None:
    # d log F / dx = f / F, so the integrated tail must have the density as its slope.
    h = 1e-4
    slope = (_log_cdf(x + h, (shape, 0.0, 1.0)) - _log_cdf(x - h, (shape, 0.0, 1.0))) / (2 * h)
    ratio = math.exp(float(skewnorm.logpdf(x, shape)) - _log_cdf(x, (shape, 0.0, 1.0)))
    assert slope == pytest.approx(ratio, rel=1e-4)


@given(st.integers(1, 40), st.integers(0, 40), st.sampled_from([0.0, 1e-5, 1e-3]))
@settings(max_examples=15)
def test_one_run_bounds_are_monotone_in_right_guesses(r: int, idle: int, delta: float) -> None:
    bounds = [present(one_run_epsilon(r + idle, r, v, delta).value) for v in range(r + 1)]
    assert bounds == sorted(bounds) and bounds[0] == 0


@given(st.data(), st.integers(1, 60), st.sampled_from([0.0, 1e-5]))
def test_the_one_run_bound_is_where_the_test_stops_rejecting(data: st.DataObject, r: int, delta: float) -> None:
    v = data.draw(st.integers(0, r))
    bound = one_run_epsilon(r, r, v, delta).value
    assert present(one_run_p_value(r, r, v, present(bound) + 1e-6, delta).value) >= 0.05
    if present(bound) > 1e-6:
        assert present(one_run_p_value(r, r, v, present(bound) - 1e-6, delta).value) < 0.05


@given(st.data(), st.integers(1, 100), st.integers(1, 100), st.sampled_from([0.0, 1e-5, 0.1]))
def test_bounds_from_rates_grow_with_hits(data: st.DataObject, members: int, controls: int, delta: float) -> None:
    false = data.draw(st.integers(0, controls))
    bounds = [present(epsilon_from_rates(hits, members, false, controls, delta).value) for hits in range(members + 1)]
    assert min(bounds) >= 0
    # Far below the diagonal the attack is a good one turned round, so only the upper branch is monotone.
    upper = [b for hits, b in enumerate(bounds) if hits / members >= false / controls]
    assert upper == sorted(upper)


@given(st.floats(-5, 5), st.lists(st.integers(-5, 5), min_size=2, max_size=9), st.lists(st.integers(-5, 5), min_size=2))
def test_likelihood_ratios(observed: float, inside: list[int], outside: list[int]) -> None:
    forth, back = lira_online(observed, inside, outside), lira_online(observed, outside, inside)
    assert (forth.value is None) == (len(set(inside)) == 1 or len(set(outside)) == 1)
    if forth.value is not None:
        assert forth.value == pytest.approx(-present(back.value), abs=1e-9)
        assert present(lira_offline(observed, outside).value) <= present(lira_offline(observed + 1, outside).value) <= 0


@given(st.floats(0.05, 3), st.floats(0.001, 0.2), st.floats(0.5, 0.95))
@example(2.5, 0.001, 0.75)
@example(2.966796875, 0.001953125, 0.5)
@example(3.0, 0.001, 0.75)
@settings(max_examples=25)
def test_the_sample_size_is_the_smallest_with_the_power(effect: float, alpha: float, power: float) -> None:
    size = int(present(power_paired_t(effect, level=alpha, power=power).value))
    assert present(power_paired_t(effect, n=size, level=alpha).value) >= power - 1e-6
    if size > 2:
        assert present(power_paired_t(effect, n=size - 1, level=alpha).value) < power + 1e-6
    assert present(power_paired_t(n=size, level=alpha, power=power).value) <= effect + 1e-6


@given(st.floats(0.52, 0.99), st.floats(0.01, 0.2), st.floats(0.5, 0.95))
@settings(max_examples=25)
def test_the_group_size_for_an_auc_is_the_smallest(auc: float, alpha: float, power: float) -> None:
    size = int(present(power_auc(auc, level=alpha, power=power).value))
    assert size == int(present(power_auc(1 - auc, level=alpha, power=power).value))
    assert present(power_auc(auc, n=size, level=alpha).value) >= power
    if size > 2:
        assert present(power_auc(auc, n=size - 1, level=alpha).value) < power
