"""A t over the root of a sum of variances rejects at its level, however unlike the parts are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from lm_audit.stats.degrees_of_freedom import degrees_of_freedom
from lm_audit.stats.means.two_way import two_way_variance

SHARES = (0.2, 0.4, 0.6, 0.75, 0.85, 0.95)


def level(rows: int, columns: int, share: float) -> float:
    """How often the two-way t at 5 % rejects tables whose rows make up ``share`` of their mean's variance.

    Over the quantiles of both estimates, in place of draws: the mean is normal and independent of them.
    """
    by_row, by_column = (np.linspace(-1, 1, size) for size in (rows, columns))
    by_row, by_column = by_row / by_row.std(ddof=1) * rows**0.5, by_column / by_column.std(ddof=1) * columns**0.5
    errors, freedoms = [], []
    for part in share * stats.chi2.ppf((np.arange(60) + 0.5) / 60, rows - 1) / (rows - 1):
        for other in (1 - share) * stats.chi2.ppf((np.arange(9) + 0.5) / 9, columns - 1) / (columns - 1):
            variance, df = two_way_variance(part**0.5 * by_row[:, None] + other**0.5 * by_column)
            errors.append(variance**0.5)
            freedoms.append(df)
    reached = stats.t.ppf(0.975, np.array(freedoms)) * np.array(errors)
    return float(2 * np.mean(stats.norm.sf(reached)))


@pytest.mark.parametrize("columns", [24, 40, 80, 200])
def test_few_rows_beside_many_columns(columns: int) -> None:
    """With degrees of freedom of the first order alone 5.5 to 5.7 % of 6 x 24 to 6 x 200."""
    assert max(level(6, columns, share) for share in (0.6, 0.75, 0.85)) <= 0.053


def test_equal_parts_and_one_part_alone_have_what_they_had() -> None:
    assert degrees_of_freedom([(0.5, 9), (0.5, 9)]) == pytest.approx(18)
    assert degrees_of_freedom([(1.0, 5), (0.0, 40)]) == pytest.approx(5)
    assert degrees_of_freedom([(1.0, 5), (1e-9, 40)]) == pytest.approx(5)
    assert degrees_of_freedom([(0.3, 5), (0.7, 40)]) == pytest.approx(1 / (0.09 / 5 + 0.49 / 40), rel=0.05)
    assert degrees_of_freedom([(3.0, 9), (3.0, 9)]) == pytest.approx(18)
    assert degrees_of_freedom([(3.0, 9), (3.0, 9)], 5.0) == pytest.approx(12.5)


@pytest.mark.parametrize("variance", [0.0, math.inf, math.nan])
def test_without_a_variance_the_part_with_the_fewest_tells(variance: float) -> None:
    """Each caller had a guard of its own, and a value of its own."""
    assert degrees_of_freedom([(variance, 9), (variance, 5)]) == 5
    assert degrees_of_freedom([(1.0, 9), (1.0, 5)], variance) == 5
    assert degrees_of_freedom([]) == math.inf


@pytest.mark.parametrize("share", SHARES)
def test_never_more_than_the_first_order_nor_fewer_than_the_smaller_part(share: float) -> None:
    for few, many in ((5, 5), (5, 12), (5, 39), (7, 199)):
        parts = [(share, few), (1 - share, many)]
        first = 1 / sum(part**2 / freedom for part, freedom in parts)
        assert few - 1e-9 <= degrees_of_freedom(parts) <= first + 1e-9
