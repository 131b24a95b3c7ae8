"""Permutation tests, adjusted p-values, paired effects, decisions and equivalence."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lm_audit.stats import (
    benjamini_hochberg,
    clustered_sign_flip,
    compare_paired,
    crossed_contrast,
    crossed_equivalence,
    decide,
    equivalence_test,
    holm,
    max_min_permutation,
    mcnemar_exact,
    paired_effect,
    permutation_test,
    sign_flip_test,
    two_way_p_value,
)
from tests.present import present

WHOLE = st.lists(st.integers(-20, 20), min_size=2, max_size=10).map(lambda xs: np.array(xs, dtype=np.float64))
SIDES = st.lists(st.integers(-20, 20), min_size=5, max_size=11).map(lambda xs: np.array(xs, dtype=np.float64))
P_VALUES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=30)


@given(WHOLE)
@settings(max_examples=25)
def test_sign_flip_equals_scipy(differences: NDArray[np.float64]) -> None:
    theirs = stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=2 ** len(differences),
        vectorized=True,
    )
    assert sign_flip_test(differences).value == pytest.approx(theirs.pvalue, abs=1e-12)


@given(WHOLE, st.integers(-60, 60), st.sampled_from([1, -1]))
def test_sign_flip_does_not_depend_on_scale_or_sign(differences: NDArray[np.float64], exponent: int, sign: int) -> None:
    scaled = sign_flip_test(sign * differences * 2.0**exponent)
    assert scaled.value == sign_flip_test(differences).value


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=4), st.lists(st.floats(-5, 5), min_size=1, max_size=4))
def test_two_sample_permutation_is_symmetric_and_bounded(x: list[float], y: list[float]) -> None:
    p = permutation_test(x, y).value
    assert p == permutation_test(y, x).value
    assert 0 < present(p) <= 1


@given(st.lists(st.integers(-9, 9), min_size=30, max_size=40), st.integers(0, 99))
@settings(max_examples=20)
def test_monte_carlo_p_is_never_zero_and_repeats(differences: list[int], seed: int) -> None:
    answer = sign_flip_test(differences, n_resamples=99, seed=seed)
    assert answer == sign_flip_test(differences, n_resamples=99, seed=seed)
    assert present(answer.value) >= 1 / 100 and "Monte Carlo" in answer.method
    pooled = permutation_test(differences[:15], differences[15:], n_resamples=99, seed=seed)
    assert present(pooled.value) >= 1 / 100 and "Monte Carlo" in pooled.method


@given(P_VALUES)
def test_adjusted_p_values_are_never_below_raw_and_monotone_in_rank(raw: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(raw)
        assert all(p <= present(q) <= 1 for p, q in zip(raw, adjusted, strict=True))
        ordered = [q for _, q in sorted(zip(raw, map(present, adjusted), strict=True))]
        assert ordered == sorted(ordered)


@given(P_VALUES)
@settings(max_examples=25)
def test_adjusted_p_values_equal_statsmodels(raw: list[float]) -> None:
    for adjust, name in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        assert adjust(raw) == pytest.approx(multipletests(raw, method=name)[1], abs=1e-12)


@given(P_VALUES, st.randoms())
def test_adjusted_p_values_keep_the_order_given(raw: list[float], random: Random) -> None:
    order = list(range(len(raw)))
    random.shuffle(order)
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(raw)
        assert adjust([raw[i] for i in order]) == [adjusted[i] for i in order]


@given(P_VALUES, st.lists(st.sampled_from([None, float("nan"), 2.0]), max_size=3))
def test_what_is_no_p_value_does_not_count_as_a_test(raw: list[float], bad: list[float | None]) -> None:
    assert holm([*bad, *raw]) == [None] * len(bad) + holm(raw)


@given(st.data(), WHOLE)
@settings(max_examples=25)
def test_effects_of_swapped_sides_change_sign(data: st.DataObject, a: NDArray[np.float64]) -> None:
    b = np.array(data.draw(st.lists(st.integers(-20, 20), min_size=len(a), max_size=len(a))), dtype=np.float64)
    forth, back = paired_effect(a, b), paired_effect(b, a)
    for name in ("mean_diff", "d_s", "g_s", "d_z", "d_av", "seed_formula_population_sd"):
        assert getattr(back, name) == (None if getattr(forth, name) is None else pytest.approx(-getattr(forth, name)))
    there, here = present(forth.direction), present(back.direction)
    assert (there.pos, there.neg) == (here.neg, here.pos)
    assert there.sign_test_p == here.sign_test_p


@given(st.data(), WHOLE, st.integers(-400, 400))
@settings(max_examples=25)
def test_standardised_effects_do_not_depend_on_the_unit(
    data: st.DataObject, a: NDArray[np.float64], exponent: int
) -> None:
    b = np.array(data.draw(st.lists(st.integers(-20, 20), min_size=len(a), max_size=len(a))), dtype=np.float64)
    here, there = paired_effect(a, b), paired_effect(np.ldexp(a, exponent), np.ldexp(b, exponent))
    for name in ("d_s", "g_s", "d_z", "d_av"):
        assert getattr(here, name) == getattr(there, name)


@given(st.floats(-10, 10), st.floats(0, 10), st.floats(-2, 2))
def test_an_interval_that_touches_zero_is_not_significant(low: float, width: float, effect: float) -> None:
    decision = decide(low, low + width, effect)
    assert decision.statistically_significant == (low > 0 or low + width < 0)
    assert decision.practically_significant == (abs(effect) >= 0.2)
    assert decide(0.0, width, effect).statistically_significant is False


@given(st.one_of(st.none(), st.just(float("nan"))), st.floats(-1, 1))
def test_missing_input_is_not_estimable(missing: float | None, effect: float) -> None:
    assert decide(missing, 1.0, effect).statistically_significant is None
    assert decide(0.1, missing, effect).statistically_significant is None
    assert decide(0.1, 1.0, missing).category == "not_estimable"


@given(WHOLE, st.integers(1, 10))
def test_equivalence_agrees_with_the_ninety_percent_interval(differences: NDArray[np.float64], margin: int) -> None:
    answer = equivalence_test(differences, margin)
    if np.ptp(differences) == 0:
        assert answer.value in (0, 1)
        return
    lower = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(differences, margin, alternative="less").pvalue
    assert answer.value == pytest.approx(max(lower, upper), abs=1e-9)


@given(SIDES, SIDES, st.integers(0, 99))
@settings(max_examples=25)
def test_two_way_interval_and_p_value_agree(rows: NDArray[np.float64], columns: NDArray[np.float64], seed: int) -> None:
    table = np.add.outer(rows, columns)
    answer = crossed_contrast(table, n_resamples=399, seed=seed)
    assert answer.two_way == two_way_p_value(table, n_resamples=399, seed=seed)
    if answer.two_way.value is None:  # Fewer than 6 rows or columns, or all cells alike: neither is given.
        assert answer.difference.low is None and answer.difference.high is None
    elif answer.two_way.value < 0.04:
        assert present(answer.difference.low) > 0 or present(answer.difference.high) < 0
    elif answer.two_way.value > 0.06:
        assert present(answer.difference.low) <= 0 <= present(answer.difference.high)
    flips = clustered_sign_flip(table)
    assert flips.larger.value == max(present(flips.rows.value), present(flips.columns.value))


@given(WHOLE, WHOLE, st.integers(0, 99))
@settings(max_examples=30)
def test_crossed_equivalence_is_easier_with_a_wider_margin(
    rows: NDArray[np.float64], columns: NDArray[np.float64], seed: int
) -> None:
    table = np.add.outer(rows, columns)
    p = [present(crossed_equivalence(table, margin, n_resamples=99, seed=seed).value) for margin in (0.5, 5, 500)]
    assert p == sorted(p, reverse=True) and p[-1] == 1 / 100


@given(st.integers(2, 5), st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_max_min_permutation_is_bounded_and_does_not_depend_on_the_unit(
    groups: int, rows: int, columns: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-9, 9, (groups, rows, columns)).astype(np.float64)
    answer = max_min_permutation(values, n_resamples=99, seed=seed)
    assert 1 / 100 <= present(answer.value) <= 1
    assert max_min_permutation(values * 4, n_resamples=99, seed=seed).value == answer.value


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.integers(0, 99))
@settings(max_examples=30)
def test_mcnemar_looks_at_discordant_pairs_only(pairs: list[tuple[bool, bool]], seed: int) -> None:
    a, b = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    gained, lost = int((b > a).sum()), int((b < a).sum())
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1
    assert mcnemar_exact(a, b).value == pytest.approx(expected)
    assert compare_paired(a, b, seed=seed).test == mcnemar_exact(a, b)
