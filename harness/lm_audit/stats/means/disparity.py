"""Largest minus smallest group mean of a crossed table: an interval and a test that hold although the two groups are
chosen by looking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.clustered import finite_table
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, no_p_value, p_value

METHOD = "max-min, test inversion over the crossed design"
FEWEST_LEVELS = 6
"""Templates and pairs from which on the interval covers (``benchmarks/coverage_bias.py``)."""

_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Disparity:
    """The disparity with its interval, and the p-value of "all groups are alike"; the two never disagree at 5%.

    ``chance`` is the disparity that groups all alike would show on average, their spread taken as estimated.
    """

    estimate: Estimate
    p_value: Estimate
    chance: float | None


@checked
def max_min_disparity(values: ArrayLike, *, confidence: float = 0.95, seed: int) -> Disparity:
    """Largest minus smallest mean over ``values`` of shape (groups, rows, columns), rows and columns being random.

    A contrast of the two groups that came out as extremes excludes 0 far too often. Here the limits are those true
    disparities d that a test of the observed one does not reject: group means are taken to lie as observed, cut off or
    drawn apart to the range d, and their errors are a multivariate t with the covariance that rows, columns and
    residual give (unbiased, Cornfield and Tukey 1956; Satterthwaite's degrees of freedom). Near 0, where values are
    cut off, the rejection region moves to the upper side as in Feldman and Cousins 1998, so that 0 is excluded in 5%
    of equal groups. Fewer than 6 rows or columns give a value without interval.
    """
    cells = finite_table(values)
    size = int(np.size(values))
    if isinstance(cells, str) or cells.ndim != 3 or len(cells) < 2:
        reason = cells if isinstance(cells, str) else f"shape {cells.shape}: at least 2 groups of a table are needed"
        missing = Estimate.not_estimable(reason, n=size, method=METHOD, confidence=confidence)
        return Disparity(missing, no_p_value(reason, method=METHOD, n=size), None)
    means = cells.mean(axis=(1, 2))
    observed = float(np.ptp(means))
    if min(cells.shape[1:]) < FEWEST_LEVELS:
        shape = f"{cells.shape[1]} x {cells.shape[2]}"
        reason = f"{shape} cells a group give no interval, {FEWEST_LEVELS} x {FEWEST_LEVELS} do"
        plain = Estimate(observed, n=size, confidence=confidence, method=METHOD, note=reason)
        return Disparity(plain, no_p_value(reason, method=METHOD, n=size), _chance(cells, seed))
    errors = mean_errors(cells, _DRAWS, seed)
    null, slack = np.ptp(errors, axis=1), _slack(cells)
    reached = _reached(observed, null, slack)
    if observed <= slack or not null.any():
        low, high = (0.0, observed) if null.any() or observed <= slack else (observed, observed)
        high = max(high, float(np.quantile(null, confidence)))
    else:
        low, high = _inverted(observed, means - (means.max() + means.min()) / 2, errors, confidence)
        if reached >= 1 - confidence:
            low = 0.0
    estimate = Estimate(observed, min(low, observed), max(high, observed), n=size, confidence=confidence, method=METHOD)
    return Disparity(estimate, p_value(reached, n=size, method=METHOD), _chance(cells, seed))


def max_min_p(values: ArrayLike, *, seed: int, draws: int = _DRAWS) -> float | None:
    """The p-value of :func:`max_min_disparity` alone, at a tenth of its cost; None where it has none.

    It is no smaller than 1 / (1 + ``draws``).
    """
    cells = finite_table(values)
    if isinstance(cells, str) or cells.ndim != 3 or len(cells) < 2 or min(cells.shape[1:]) < FEWEST_LEVELS:
        return None
    null = np.ptp(mean_errors(cells, draws, seed), axis=1)
    return _reached(float(np.ptp(cells.mean(axis=(1, 2)))), null, _slack(cells))


def groups_apart(
    values: Array, groups: Integers, rows: Integers, columns: Integers, *, seed: int, draws: int = _DRAWS
) -> float | None:
    """:func:`max_min_p` of ``values`` (n,) in the cells that three numbers each, 0, 1, ..., name: some may be missing.

    Of rows and columns, only those that every group has whole; ``None`` where fewer than 6 are left. Of the changes of
    two runs it is the p-value of "all groups changed alike": largest minus smallest mean of groups that are alike lies
    the further above 0 the more noise a run has, so that the difference of two such disparities, over its standard
    error, rejects in 19 % of nine groups that are alike in both runs.
    """
    table = np.full((groups.max() + 1, rows.max() + 1, columns.max() + 1), np.nan)
    table[groups, rows, columns] = values
    while (missing := np.isnan(table)).any():
        by_row, by_column = missing.mean(axis=(0, 2)), missing.mean(axis=(0, 1))
        if by_row.max() >= by_column.max():
            table = np.delete(table, int(by_row.argmax()), axis=1)
        else:
            table = np.delete(table, int(by_column.argmax()), axis=2)
    return max_min_p(table, seed=seed, draws=draws)


def _slack(cells: Array) -> float:
    return 8 * float(np.finfo(np.float64).eps) * float(np.abs(cells).max())


def _reached(observed: float, null: Array, slack: float) -> float:
    return (1 + int((null >= observed - slack).sum())) / (1 + len(null))


def _chance(cells: Array, seed: int) -> float | None:
    if min(cells.shape[1:]) < 2:
        return None
    # Normal errors: with few rows those of a t have no mean.
    return float(np.ptp(mean_errors(cells, _DRAWS, seed, heavy=False), axis=1).mean())


def mean_errors(cells: Array, draws: int, seed: int, *, heavy: bool = True) -> Array:
    """Draws of the errors of the group means of ``cells`` (groups, rows, columns); shape (draws, groups).

    They are of a multivariate t, or without ``heavy`` of a normal law with the spread that was estimated.
    """
    groups, rows, columns = cells.shape
    centred = cells - cells.mean(axis=0)
    means = centred.mean(axis=(1, 2))
    by_row = (centred.mean(axis=2) - means[:, None]) / np.sqrt(rows * (rows - 1))
    by_column = (centred.mean(axis=1) - means[:, None]) / np.sqrt(columns * (columns - 1))
    rest = centred - means[:, None, None] - (centred.mean(axis=2) - means[:, None])[:, :, None]
    rest = rest - (centred.mean(axis=1) - means[:, None])[:, None, :]
    parts = np.array([(by_row**2).sum(), (by_column**2).sum()])
    # The residual is in both parts, and belongs in one.
    residual = float((rest**2).sum()) / ((rows - 1) * (columns - 1)) / (rows * columns)
    freedom = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)], dtype=np.float64)
    total = max(float(parts.sum()) - residual, float(parts.max()))
    rng = np.random.default_rng(seed)
    if total <= 0:
        return np.zeros((draws, groups))
    df = total**2 / float((np.array([*parts, residual]) ** 2 / freedom).sum())
    # Each direction in which groups differ tells of the spread once more.
    covariance = by_row @ by_row.T + by_column @ by_column.T
    df *= float(np.trace(covariance) ** 2 / (covariance**2).sum())
    # Where rows and columns cancel out and the residual is all there is, hardly any are left: one at least, or the
    # tails of a t are beyond all numbers.
    df = max(df, 1.0)
    normal = rng.standard_normal((draws, rows)) @ by_row.T + rng.standard_normal((draws, columns)) @ by_column.T
    tails = np.sqrt(df / rng.chisquare(df, draws))[:, None] if heavy else 1.0
    return np.asarray(normal * tails * np.sqrt(total / parts.sum()), dtype=np.float64)


def _inverted(observed: float, means: Array, errors: Array, confidence: float) -> tuple[float, float]:
    """The least and the largest true disparity that the observed one is compatible with."""
    null = np.ptp(errors, axis=1)
    alpha = 1 - confidence

    def place(d: float) -> tuple[float, float]:
        """P(disparity <= observed) where it truly is d, and the share of the rejection region below."""
        # Groups that lie further apart than they truly can are taken to lie at the ends.
        placed = np.clip(means, -d / 2, d / 2) if d < observed else means * (d / observed)
        ranges = np.ptp(errors + placed, axis=1)
        overlap = min(1.0, 2 * float((null >= np.median(ranges)).mean()))
        return float((ranges <= observed).mean()), alpha / 2 * (1 - overlap)

    def too_small(d: float) -> bool:
        below, tail = place(d)
        return below > tail + confidence

    def too_large(d: float) -> bool:
        below, tail = place(d)
        return below < tail

    reach = observed + float(np.quantile(null, 0.999)) + 1e-300
    low = _border(too_small, 0.0, reach) if too_small(0.0) else 0.0
    high = _border(lambda d: not too_large(d), max(low, 0.0), 4 * reach)
    return low, high


def _border(holds: Callable[[float], bool], start: float, stop: float) -> float:
    """Where a condition that holds at ``start`` ends, by bisection."""
    for _ in range(20):
        middle = (start + stop) / 2
        start, stop = (middle, stop) if holds(middle) else (start, middle)
    return (start + stop) / 2
