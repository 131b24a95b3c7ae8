"""What each test of the grid and a right test say of one table, by formulas written out here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import norm, t

from lm_audit.audits.bias.grid.controls import exchanges
from lm_audit.audits.bias.grid.controls.exchanges import (
    LIMITS,
    TwoWay,
    _alone,
    _narrowness,
    _share,
    evidence_of,
    said,
    shares,
    unlike_right_ones,
)
from lm_audit.stats import crossed_contrast, crossed_equivalence, max_min_permutation, two_way_mean
from lm_audit.stats.means.disparity import max_min_p


def table_of(seed: int, rows: float, columns: float, rest: float, shape: tuple[int, int] = (6, 8)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    by_row, by_column = rows * rng.normal(size=(shape[0], 1)), columns * rng.normal(size=(1, shape[1]))
    return np.asarray(0.2 + by_row + by_column + rest * rng.normal(size=shape))


def mean_squares(table: np.ndarray) -> tuple[float, float, float]:
    """Of rows, of columns and of what is left, as an analysis of variance gives them, cell by cell."""
    rows, columns = table.shape
    middle = sum(float(x) for x in table.flat) / table.size
    of_row = [sum(float(x) for x in table[i]) / columns for i in range(rows)]
    of_column = [sum(float(x) for x in table[:, j]) / rows for j in range(columns)]
    left = [float(table[i, j]) - of_row[i] - of_column[j] + middle for i in range(rows) for j in range(columns)]
    return (
        columns * sum((x - middle) ** 2 for x in of_row) / (rows - 1),
        rows * sum((x - middle) ** 2 for x in of_column) / (columns - 1),
        sum(x**2 for x in left) / ((rows - 1) * (columns - 1)),
    )


@pytest.mark.parametrize("shape", [(6, 8), (9, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_the_right_test_has_the_variance_of_both_sides_less_what_both_contain(
    seed: int, shape: tuple[int, int]
) -> None:
    table = table_of(seed, 0.8, 0.9, 0.3, shape)
    rows, columns = shape
    squares = mean_squares(table)
    variance = (squares[0] + squares[1] - squares[2]) / table.size
    freedom = (squares[0] + squares[1] - squares[2]) ** 2 / (
        squares[0] ** 2 / (rows - 1) + squares[1] ** 2 / (columns - 1) + squares[2] ** 2 / ((rows - 1) * (columns - 1))
    )
    found = TwoWay.of(table)
    assert (found.mean, found.error, found.freedom) == pytest.approx((table.mean(), variance**0.5, freedom))
    assert found.p == pytest.approx(2 * t.sf(abs(found.mean) / found.error, freedom))
    assert found.half == pytest.approx(t.isf(0.025, freedom) * found.error)
    assert TwoWay.of(-table).p == pytest.approx(found.p)


def cancelling(shape: tuple[int, int], larger: int) -> np.ndarray:
    """Rows and columns that differ less than the cells: what is left is more than the smaller side gives."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=shape)
    noise -= noise.mean(axis=0) + noise.mean(axis=1, keepdims=True) - noise.mean()
    size = [0.3, 0.02] if larger == 0 else [0.02, 0.3]
    ups = [np.where(np.arange(n) % 2, 1.0, -1.0) * s for n, s in zip(shape, size, strict=True)]
    return np.asarray(0.1 + noise + ups[0][:, None] + ups[1])


@pytest.mark.parametrize("larger", [0, 1])
@pytest.mark.parametrize("shape", [(6, 8), (8, 6)])
def test_the_right_test_says_no_more_than_templates_or_pairs_alone_allow(shape: tuple[int, int], larger: int) -> None:
    table = cancelling(shape, larger)
    squares = mean_squares(table)
    assert squares[0] + squares[1] - squares[2] < max(squares[:2])
    found = TwoWay.of(table)
    assert found.freedom == shape[larger] - 1
    assert found.error == pytest.approx((squares[larger] / table.size) ** 0.5)
    assert squares[larger] == max(squares[:2])


def test_cells_that_do_not_differ_have_no_error() -> None:
    assert TwoWay.of(np.full((6, 8), 2.0)) == TwoWay(2.0, 0.0, 5.0)


@pytest.mark.parametrize(
    ("p", "z"),
    [(None, 0.0), (1.0, 0.0), (1.5, 0.0), (0.05, 1.959964), (1 / 32, 2.153875), (1e-9, 2.153875), (0.0, 2.153875)],
)
def test_evidence_is_the_normal_deviate_of_a_p_value_up_to_what_six_signs_can_say(p: float | None, z: float) -> None:
    assert evidence_of(p) == pytest.approx(z, abs=1e-6)


@pytest.mark.parametrize("shape", [(6, 6), (9, 9), (20, 8)])
def test_each_test_is_asked_about_the_table_and_held_against_the_right_one(shape: tuple[int, int]) -> None:
    """Of 8 templates on there is a bootstrap too, which is not asked; signs of 20 are drawn, by the seed."""
    table = table_of(11, 0.5, 0.4, 0.8, shape)
    seed, right = 29, TwoWay.of(table)
    halves = np.stack([table / 2, -table / 2])
    contrast = crossed_contrast(table, method="t", seed=seed)
    margin = abs(table.mean()) + 1.5 * right.error
    score = two_way_mean(table / 2)
    assert contrast.difference.low is not None and contrast.difference.high is not None
    assert score.low is not None and score.high is not None
    z = norm.isf(right.p / 2)
    known = {
        "contrast": (evidence_of(contrast.two_way.value), z),
        "sign flips": (evidence_of(contrast.sign_flip.larger.value), z),
        "disparity": (evidence_of(max_min_p(halves, seed=seed)), z),
        "permutation": (evidence_of(max_min_permutation(halves, n_resamples=199, seed=seed).value), z),
        "equivalence": (
            evidence_of(crossed_equivalence(table, margin, method="t", seed=seed).value),
            norm.isf(t.sf(1.5, right.freedom) / 2),
        ),
        "interval of the contrast": (2 * right.half / (contrast.difference.high - contrast.difference.low), 1.0),
        "interval of the group score": (right.half / (score.high - score.low), 1.0),
    }
    found = said(table, seed)
    assert found.keys() == LIMITS.keys() == known.keys()
    for name, pair in known.items():
        assert found[name] == pytest.approx(pair), name
    assert 0 < right.p < 1 and all(0 < value < 2.16 for pair in found.values() for value in pair)


def test_a_table_below_zero_says_as_much_as_one_above_it() -> None:
    table = table_of(3, 0.5, 0.4, 0.8, (6, 6)) + 0.3
    above, below = said(table, 1), said(-table, 1)
    for name in ("contrast", "sign flips", "disparity", "equivalence", *exchanges.ALONE[1:]):
        assert above[name] == pytest.approx(below[name]), name


@pytest.mark.parametrize(
    ("low", "high", "first"), [(-1.0, 3.0, 0.75), (0.0, 1.5, 2.0), (1.0, 1.0, 0.0), (None, 2.0, 0.0), (2.0, None, 0.0)]
)
def test_an_interval_says_the_more_the_narrower_it_is(low: float | None, high: float | None, first: float) -> None:
    assert _narrowness(low, high, 1.5) == (first, 1.0)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_one_side_shares_stands_alone_with_a_tenth_of_the_rest(axis: int) -> None:
    table = table_of(2, 0.7, 0.5, 0.9)
    shared = table.mean(axis=axis, keepdims=True)
    left = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    rest = _alone(table, axis) - shared
    assert rest.std() == pytest.approx(shared.std() / 10)
    assert np.corrcoef(rest.ravel(), left.ravel())[0, 1] == pytest.approx(1)
    assert _alone(table, axis).mean(axis=axis) == pytest.approx(shared.ravel())


@pytest.mark.parametrize("axis", [0, 1])
def test_cells_without_a_rest_of_their_own_are_what_their_side_shares(axis: int) -> None:
    table = np.zeros((4, 4))
    table[0] = 2.0
    table = table if axis == 1 else table.T
    assert _alone(table, axis) == pytest.approx(table)
    assert _alone(table, 1 - axis) == pytest.approx(np.full((4, 4), 0.5))


@pytest.mark.parametrize(
    ("pairs", "share"),
    [
        ([(1.0, 2.0), (2.0, 2.5)], 3 / 4.5),
        ([(3.0, 1.0), (0.0, 2.0)], 1.0),
        ([(1.0, 2.0), (1.0, 2.5)], 0.0),
        ([(0.5, 2.0), (0.5, 2.0)], 0.25),
        ([(0.5, 1.0), (1.5, 1.0)], 1.0),
    ],
)
def test_a_share_is_of_all_tables_together_and_none_where_the_test_always_says_the_same(
    pairs: list[tuple[float, float]], share: float
) -> None:
    assert _share(np.array(pairs)) == pytest.approx(share)


def tables_asked(
    monkeypatch: pytest.MonkeyPatch, differences: np.ndarray, seed: int = 4
) -> tuple[list[np.ndarray], dict[tuple[str, str], float]]:
    asked: list[np.ndarray] = []

    def spied(table: np.ndarray, given: int) -> Mapping[str, tuple[float, float]]:
        assert given == seed
        asked.append(table)
        return {name: (place + len(asked) / 100, 2.0) for place, name in enumerate(LIMITS)}

    monkeypatch.setattr(exchanges, "said", spied)
    return asked, shares(differences, seed)


@pytest.mark.parametrize("side", ["templates", "pairs"])
def test_names_are_exchanged_in_whole_templates_or_pairs_whichever_differ_more(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(1, *((0.9, 0.2) if side == "templates" else (0.2, 0.9)), 0.3)
    asked, _ = tables_asked(monkeypatch, table)
    assert len(asked) == 3 * 32
    shape = {"templates": (6, 1), "pairs": (1, 8)}
    for start, cells, by in ((0, table, side), (32, _alone(table, 1), "templates"), (64, _alone(table, 0), "pairs")):
        signs = [np.sign(one / cells) for one in asked[start : start + 32]]
        known = np.random.default_rng(4)
        for sign, one in zip(signs, asked[start : start + 32], strict=True):
            drawn = known.choice([-1.0, 1.0], size=shape[by])
            assert np.array_equal(sign, np.broadcast_to(drawn, cells.shape))
            assert one == pytest.approx(cells * drawn)


def test_a_side_differs_more_by_the_variance_of_its_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three templates with a smaller spread than twelve pairs, whose mean is the surer all the same."""
    ups, many = np.array([0.6, -0.6, 0.0]), np.where(np.arange(12) % 2, 0.8, -0.8)
    assert ups.var(ddof=1) / 3 > many.var(ddof=1) / 12 and ups.var(ddof=1) < many.var(ddof=1)
    asked, _ = tables_asked(monkeypatch, 5 + ups[:, None] + many)
    assert all(np.ptp(np.sign(one), axis=1).max() == 0 for one in asked[:32])
    assert any(np.ptp(np.sign(one), axis=0).max() > 0 for one in asked[:32])


@pytest.mark.parametrize(("ratio", "whole"), [(0.95, "pairs"), (1.0, "templates"), (1.05, "templates")])
def test_the_side_that_differs_a_little_more_is_taken_and_templates_where_none_does(
    ratio: float, whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ups = np.array([1.0, -1.0, 2.0, -2.0])
    asked, _ = tables_asked(monkeypatch, 8 + np.sqrt(ratio) * ups[:, None] + ups)
    assert all(np.ptp(np.sign(one), axis=1 if whole == "templates" else 0).max() == 0 for one in asked[:32])


def test_of_one_side_alone_only_what_a_right_test_says_the_same_of_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = tables_asked(monkeypatch, table_of(1, 0.9, 0.2, 0.3))
    alone = ("contrast", "interval of the contrast", "interval of the group score")
    sides = (" of templates alone", " of word pairs alone")
    assert found.keys() == {(name, "") for name in LIMITS} | {(name, side) for name in alone for side in sides}
    mean = 16.5 / 100
    assert {name: found[name, ""] for name in LIMITS} == pytest.approx(
        {name: (place + mean) / 2 for place, name in enumerate(LIMITS)}
    )


def test_tables_without_any_spread_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two templates that differ in their sign alone: exchanged, half of the tables are one number throughout."""
    table = np.repeat(np.array([[1.0], [-1.0]]), 4, axis=1)
    asked, found = tables_asked(monkeypatch, table)
    assert 0 < len(asked) < 64 and {what for _, what in found} == {"", " of templates alone"}
    assert all(np.ptp(one) == 2 for one in asked)
    # What rounding leaves of large cells is none.
    large, _ = tables_asked(monkeypatch, 1e6 * table + 1e-5 * table_of(0, 0, 0, 1, (2, 4)))
    assert large and all(np.ptp(one) > 1e6 for one in large[: len(asked) // 2])
    asked, found = tables_asked(monkeypatch, table + 1e-8 * table_of(0, 0, 0, 1, (2, 4)))
    assert {what for _, what in found} == {"", " of templates alone", " of word pairs alone"}


@pytest.mark.parametrize(("name", "what"), [("contrast", " of word pairs alone"), ("permutation", "")])
def test_a_test_is_unlike_the_right_one_beyond_its_limits_only(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = LIMITS[name]
    for share, wrong in ((low, False), (high, False), (low - 1e-9, True), (high + 1e-9, True), (np.nan, True)):
        monkeypatch.setattr(exchanges, "shares", lambda cells, seed, share=share: {(name, what): share} if seed else {})
        told = f"{name}{what}: says {share:.2f} of what a right test says of exchanged names ({low} to {high} would do)"
        assert unlike_right_ones(np.zeros((6, 6)), 7) == [told] * wrong
