"""Adjusted p-values and shares of families, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from lm_audit.stats import able, benjamini_hochberg, family_weights, holm, weighted_holm

FOUR = [0.01, 0.04, 0.03, 0.005]
NONE = [None, math.nan, -0.1, 1.1, math.inf]


@pytest.mark.parametrize(
    ("p", "by_holm", "by_rate"),
    [
        (FOUR, [0.03, 0.06, 0.06, 0.02], [0.02, 0.04, 0.04, 0.02]),
        ([0.9, 0.6, 0.0], [1.0, 1.0, 0.0], [0.9, 0.9, 0.0]),
        ([1.0, 0.5], [1.0, 1.0], [1.0, 1.0]),
        ([0.2, 0.2, 0.2], [0.6, 0.6, 0.6], [0.2, 0.2, 0.2]),
        ([0.03], [0.03], [0.03]),
        ([], [], []),
    ],
)
def test_adjusted_p_values_of_one_family(p: list[float], by_holm: list[float], by_rate: list[float]) -> None:
    assert holm(p) == pytest.approx(by_holm) and benjamini_hochberg(p) == pytest.approx(by_rate)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_what_is_no_p_value_stays_none_and_counts_for_nothing(adjust: object) -> None:
    assert callable(adjust)
    found = adjust([NONE[0], *FOUR[:2], *NONE[1:], *FOUR[2:]])
    assert [found[i] for i in (0, 3, 4, 5, 6)] == [None] * 5
    assert [found[i] for i in (1, 2, 7, 8)] == adjust(FOUR)
    assert adjust([None, None]) == [None, None]


def test_a_false_discovery_rate_is_never_below_the_raw_value() -> None:
    """What scipy gives of this one, by its rounding, is one bit less than the p-value itself."""
    for k in range(1, 400):
        p = [k / 997, *(0.999 + i / 1e5 for i in range(48))]
        assert all((told or 0.0) >= raw for told, raw in zip(benjamini_hochberg(p + p), p + p, strict=True))


@pytest.mark.parametrize(
    ("p", "weights", "adjusted"),
    [
        ([0.01, 0.02, 0.03], [0.5, 0.25, 0.25], [0.02, 0.04, 0.04]),
        ([0.03, 0.01, 0.02], [0.25, 0.5, 0.25], [0.04, 0.02, 0.04]),
        ([0.01, 0.03], [0.25, 0.25], [0.02, 0.03]),
        ([0.6, 0.3], [0.5, 0.5], [0.6, 0.6]),
        ([0.9, 0.8], [0.5, 0.5], [1.0, 1.0]),
        ([0.0, 0.04], [0.2, 0.8], [0.0, 0.04]),
        ([0.02, 0.02], [0.8, 0.2], [0.025, 0.025]),
    ],
)
def test_holm_with_weights(p: list[float], weights: list[float], adjusted: list[float]) -> None:
    assert weighted_holm(p, weights) == pytest.approx(adjusted)


def test_equal_weights_give_the_ordinary_procedure() -> None:
    assert weighted_holm(FOUR, [0.25] * 4) == pytest.approx(holm(FOUR))


@pytest.mark.parametrize(
    ("paths", "weights"),
    [
        ([("a", "1"), ("a", "2"), ("b", "1")], [0.25, 0.25, 0.5]),
        ([("a",), ("a",), ("b",)], [0.25, 0.25, 0.5]),
        ([("a", "1", "x"), ("a", "1", "y"), ("a", "2", "x"), ("b", "1", "x")], [0.125, 0.125, 0.25, 0.5]),
        ([("a", "1"), ("b", "1"), ("b", "2"), ("c", "1")], [1 / 3, 1 / 6, 1 / 6, 1 / 3]),
        ([()], [1.0]),
        ([], []),
    ],
)
def test_a_family_pays_for_its_own_size_alone(paths: list[tuple[str, ...]], weights: list[float]) -> None:
    assert family_weights(paths) == pytest.approx(weights)


ONE, TWO = [("a",)], [("a", "1"), ("a", "2")]


@pytest.mark.parametrize(
    ("paths", "floors", "level", "kept"),
    [
        (ONE, [0.05], 0.05, [0]),
        (ONE, [0.0501], 0.05, []),
        (ONE, [0.0501], 0.1, [0]),
        (TWO, [0.025, 0.025], 0.05, [0, 1]),
        # Neither can be significant at a half of 5 %; both go together, as neither is the less able.
        (TWO, [0.03, 0.03], 0.05, []),
        # The less able goes, and the other has all of it.
        (TWO, [0.04, 0.03], 0.05, [1]),
        (TWO, [0.03, 0.04], 0.05, [0]),
        # A family's own size: the half of "b" is enough for what a quarter would not be.
        ([*TWO, ("b", "1")], [0.001, 0.001, 0.025], 0.05, [0, 1, 2]),
        # What leaves "a" makes room there first, and an empty "a" leaves all to "b".
        ([*TWO, ("b", "1")], [0.02, 0.001, 0.025], 0.05, [1, 2]),
        ([*TWO, ("b", "1")], [0.2, 0.3, 0.05], 0.05, [2]),
        ([], [], 0.05, []),
    ],
)
def test_what_cannot_be_significant_takes_nothing_from_the_others(
    paths: list[tuple[str, ...]], floors: list[float], level: float, kept: list[int]
) -> None:
    assert able(paths, floors, level) == kept
    if level == 0.05:
        assert able(paths, floors) == kept
