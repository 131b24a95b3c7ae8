"""The standard error of a statistic: the textbook's formulas, worked out here from the values alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from lm_audit.sources import spread
from lm_audit.sources.clusters import Clustering
from lm_audit.sources.spread import Spread, spread_of
from lm_audit.sources.units import Floats
from lm_audit.stats.degrees_of_freedom import degrees_of_freedom

VALUES = np.array([3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.0, 6.5, 5.0, -3.5, 8.0, 0.5])
DOZEN = np.arange(12)


def mean_of(values: Floats) -> Callable[[Floats], Floats]:
    def mean(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # nothing is left where the only unit is left out
            return np.asarray((weights @ values) / weights.sum(axis=1), dtype=np.float64)

    return mean


def one_way(codes: Sequence[int], strata: Sequence[int] | None = None) -> Clustering:
    count = max(codes) + 1
    return Clustering(np.array(codes), np.zeros(count, dtype=np.int64) if strata is None else np.array(strata))


def crossed(rows: Sequence[int], columns: Sequence[int]) -> tuple[Clustering, ...]:
    return one_way(rows), one_way(columns), one_way(range(len(rows)))


def difference_of(values: Floats, side: Sequence[int]) -> Callable[[Floats], Floats]:
    """The mean of the units on side 1 minus that of those on side 0."""
    first = np.array(side, dtype=bool)
    inside, outside = mean_of(values[first]), mean_of(values[~first])
    return lambda weights: inside(weights[:, first]) - outside(weights[:, ~first])


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    found = spread_of(mean_of(VALUES), (one_way(range(12)),))
    assert found.variance == pytest.approx(VALUES.var(ddof=1) / 12)
    assert found.df == pytest.approx(11) and found.clusters == 12


@pytest.mark.parametrize("size", [2, 3])
def test_two_clusters_have_a_spread_and_one_has_none(size: int) -> None:
    values = VALUES[:size]
    found = spread_of(mean_of(values), (one_way(range(size)),))
    assert found.variance == pytest.approx(values.var(ddof=1) / size)
    assert found.df == pytest.approx(size - 1) and found.clusters == size
    alone = spread_of(difference_of(VALUES[:3], [0, 0, 1]), (one_way(range(3), [0, 0, 1]),))
    assert math.isnan(alone.variance) and math.isnan(alone.df) and alone.clusters == 3


def test_two_samples_have_the_variances_of_both_and_welchs_degrees_of_freedom() -> None:
    side = [1] * 5 + [0] * 7
    a, b = VALUES[:5], VALUES[5:]
    found = spread_of(difference_of(VALUES, side), (one_way(range(12), side),))
    parts = [a.var(ddof=1) / 5, b.var(ddof=1) / 7]
    assert found.variance == pytest.approx(sum(parts))
    assert found.df == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 6))
    assert found.clusters == 5


def test_where_nothing_varies_all_clusters_but_one_are_free() -> None:
    found = spread_of(mean_of(np.ones(12)), (one_way(range(12)),))
    assert (found.variance, found.df, found.clusters) == (0.0, 11.0, 12)


def test_a_statistic_that_has_no_value_without_a_cluster_has_no_spread() -> None:
    found = spread_of(lambda weights: np.where(weights[:, 0] > 0, weights @ VALUES, np.nan), (one_way(range(12)),))
    assert math.isnan(found.variance) and math.isnan(found.df) and found.clusters == 12


def anova(table: Floats) -> tuple[float, float, float]:
    """Mean squares of a full table's rows and columns, and of what is left, as they enter the mean's variance."""
    rows, columns = table.shape
    by_row, by_column, middle = table.mean(axis=1), table.mean(axis=0), table.mean()
    left = table - by_row[:, None] - by_column[None, :] + middle
    rest = (left**2).sum() / ((rows - 1) * (columns - 1)) / table.size
    return by_row.var(ddof=1) / rows, by_column.var(ddof=1) / columns, rest


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (4, 3), (2, 6)])
def test_crossed_factors_add_up_and_what_both_hold_is_taken_off_once(shape: tuple[int, int]) -> None:
    table = VALUES[: shape[0] * shape[1]].reshape(shape)
    rows, columns = (index.ravel() for index in np.indices(shape))
    found = spread_of(mean_of(table.ravel()), crossed(rows.tolist(), columns.tolist()))
    by_row, by_column, rest = anova(table)
    wanted = max(by_row + by_column - rest, by_row, by_column)
    assert found.variance == pytest.approx(wanted)
    df = degrees_of_freedom([(by_row, shape[0] - 1), (by_column, shape[1] - 1)], wanted)
    assert found.df == pytest.approx(df) and found.clusters == min(shape)


def test_cells_that_are_missing_leave_what_rows_and_columns_do_not_explain() -> None:
    """Against the residuals of the least squares fit of rows and columns."""
    places = [place for place in itertools.product(range(4), range(3)) if place not in {(0, 1), (3, 2)}]
    rows, columns = zip(*places, strict=True)
    values = VALUES[: len(places)]
    design = np.zeros((len(places), 7))
    for index, (row, column) in enumerate(places):
        design[index, row] = design[index, 4 + column] = 1
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    twice = (rest**2).sum() / (len(places) - 4 - 3 + 1) / len(places)
    factors = crossed(rows, columns)
    alone = [spread_of(mean_of(values), (factor,)).variance for factor in factors[:2]]
    assert spread_of(mean_of(values), factors).variance == pytest.approx(max(sum(alone) - twice, *alone), rel=1e-6)


def test_a_table_whose_cells_tell_nothing_beside_rows_and_columns_takes_nothing_off() -> None:
    """Four cells in a row of steps: as many as rows and columns less one."""
    rows, columns = (0, 0, 1, 1), (0, 1, 1, 2)
    factors = crossed(rows, columns)
    alone = [spread_of(mean_of(VALUES[:4]), (factor,)).variance for factor in factors[:2]]
    assert spread_of(mean_of(VALUES[:4]), factors).variance == pytest.approx(sum(alone))


def test_the_bootstrap_of_a_mean_is_its_standard_error_nearly() -> None:
    found = spread_of(mean_of(VALUES), (one_way(range(12)),), rough=True)
    assert found.variance == pytest.approx(VALUES.var(ddof=1) / 12, rel=0.12)
    assert (found.df, found.clusters) == (11.0, 12)


def test_the_bootstrap_draws_each_sample_by_itself_and_counts_the_smaller() -> None:
    side = [1] * 4 + [0] * 8
    found = spread_of(difference_of(VALUES, side), (one_way(range(12), side),), rough=True)
    # Without n over n - 1 of each sample it is what the draws give; that of the smaller stands for both.
    wanted = (VALUES[:4].var() / 4 + VALUES[4:].var() / 8) * 4 / 3
    assert found.variance == pytest.approx(wanted, rel=0.12)
    assert (found.df, found.clusters) == (3.0, 4)
    two = spread_of(difference_of(VALUES[:4], [1, 1, 0, 0]), (one_way(range(4), [1, 1, 0, 0]),), rough=True)
    assert two.variance > 0 and (two.df, two.clusters) == (1.0, 2)
    alone = spread_of(difference_of(VALUES[:3], [0, 0, 1]), (one_way(range(3), [0, 0, 1]),), rough=True)
    assert math.isnan(alone.variance) and math.isnan(alone.df) and alone.clusters == 3


@pytest.mark.parametrize(("share", "known"), [(0.4, False), (0.6, True)])
def test_draws_without_a_value_are_left_out_unless_they_are_half(share: float, known: bool) -> None:
    def some(weights: Floats) -> Floats:
        """A value for that share of the draws."""
        return np.where(np.arange(len(weights)) < share * len(weights), mean_of(VALUES)(weights), np.nan)

    found = spread_of(some, (one_way(range(12)),), rough=True)
    assert math.isfinite(found.variance) is known and found.df == 11.0


@pytest.mark.parametrize("rough", [False, True])
def test_how_many_weights_are_held_at_a_time_changes_nothing(rough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    factors = crossed((DOZEN // 4).tolist(), (DOZEN % 4).tolist())
    seen: list[int] = []

    def counted(weights: Floats) -> Floats:
        seen.append(len(weights))
        return mean_of(VALUES)(weights)

    def of(batch: int) -> Spread:
        monkeypatch.setattr(spread, "BATCH", batch)
        seen.clear()
        return spread_of(counted, factors, rough=rough)

    whole, calls = of(2**21), len(seen)
    assert of(60) == pytest.approx(whole) if rough else of(60) == whole
    assert max(seen) == 5 and len(seen) > calls and sum(seen) == (3 * spread.DRAWS if rough else 3 + 4 + 12)
    if not rough:
        assert of(1) == whole and set(seen) == {1}
