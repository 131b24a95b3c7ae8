"""The two-way t covers tables however their rows, columns and cells share the spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lm_audit.stats import crossed_contrast, crossed_equivalence, two_way_mean
from lm_audit.stats.means.two_way import two_way_variance

RUNS = 400


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (12, 13)])
@pytest.mark.parametrize("spreads", [(0.5, 0.5, 0.85), (1.0, 0.2, 0.5), (1.0, 1.0, 0.3)])
def test_coverage(rows: int, columns: int, spreads: tuple[float, float, float]) -> None:
    rng = np.random.default_rng([rows, columns])
    held = 0
    for _ in range(RUNS):
        by_row, by_column, cell = spreads
        table = rng.normal(0, by_row, (rows, 1)) + rng.normal(0, by_column, (1, columns))
        found = two_way_mean(table + rng.normal(0, cell, (rows, columns)))
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    # 2,000 of each: 94.2 % to 96.0 %; three standard errors of 400.
    assert held / RUNS >= 0.942 - 3 * 0.0115


def test_what_rows_and_columns_have_is_not_taken_off_as_the_cells() -> None:
    """Cells that are the sum of row and column hold nothing twice: the variance of the mean is that of both sums."""
    rng = np.random.default_rng(2)
    rows, columns = rng.normal(size=(6, 1)), rng.normal(size=(1, 13))
    variance, _ = two_way_variance(rows + columns)
    assert variance == pytest.approx(rows.var(ddof=1) / 6 + columns.var(ddof=1) / 13)


def test_interval_and_tests_are_of_one_t() -> None:
    table = np.random.default_rng(4).normal(0.4, 1.0, (9, 11))
    found = crossed_contrast(table, method="t", seed=0)
    assert found.difference == two_way_mean(table)
    low, high = found.difference.low, found.difference.high
    assert low is not None and high is not None and found.two_way.value is not None
    assert (low > 0) == (found.two_way.value < 0.05)
    # The 90 % interval touches the margin where the larger one-sided p is 5 %.
    ninety = two_way_mean(table, confidence=0.9)
    assert ninety.high is not None
    assert crossed_equivalence(table, ninety.high, method="t", seed=0).value == pytest.approx(0.05)


def test_an_unspread_or_small_table() -> None:
    assert crossed_equivalence(np.full((7, 7), 0.2), 0.5, method="t", seed=0).value == 0.0
    assert crossed_equivalence(np.full((7, 7), 0.7), 0.5, method="t", seed=0).value == 1.0
    assert crossed_equivalence(np.ones((5, 7)), 0.5, method="t", seed=0).value is None
    assert two_way_mean(np.arange(35.0).reshape(5, 7)).low is None
    huge = np.random.default_rng(1).normal(size=(8, 8))
    plain, scaled = two_way_mean(huge), two_way_mean(huge * 2.0**900)
    assert plain.low is not None and scaled.low == pytest.approx(plain.low * 2.0**900)


def test_one_spread_alone_is_the_plain_t_of_the_rows() -> None:
    """Rows that differ and columns that do not: the interval is that of the row means."""
    means = np.random.default_rng(2).normal(size=10)
    found = two_way_mean(np.repeat(means[:, None], 40, axis=1))
    error = means.std(ddof=1) / np.sqrt(10)
    assert found.high is not None and found.value is not None
    assert found.high - found.value == pytest.approx(float(stats.t.ppf(0.975, 9)) * error, rel=1e-6)
