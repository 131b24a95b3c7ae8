"""Evidence that an effect is small: not the same as no evidence for an effect."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import check_choice
from lm_audit.stats.bootstrap.clustered import TABLE_METHODS, crossed_distribution, finite_table
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import finite_array, large_exponent, no_p_value, number, p_value, rounding


@checked
def equivalence_test(differences: ArrayLike, margin: float) -> Estimate:
    """p-value of "the mean difference lies outside (-margin, margin)", by two one-sided t-tests; the larger of both.

    Small p: no effect larger than the margin. Equivalent to the (1 - 2 alpha) interval lying within the margin. Without
    spread p is 0 inside the margin and 1 outside. Source: Schuirmann 1987.
    """
    method = "two one-sided t-tests"
    values, width = finite_array(differences, "differences"), number("margin", margin, low=0)
    if isinstance(values, str) or isinstance(width, str):
        return no_p_value(values if isinstance(values, str) else str(width), method=method, n=np.size(differences))
    n = len(values)
    if n < 2:
        return no_p_value("one difference has no spread", method=method, n=n)
    exponent = large_exponent(values)
    scaled = np.ldexp(values, -exponent)
    with np.errstate(all="ignore"):
        width = float(np.ldexp(width, -exponent))
    mean, spread, noise = float(scaled.mean()), float(scaled.std(ddof=1)), rounding(scaled)
    if spread <= noise:
        return p_value(float(abs(mean) >= width - noise), n=n, method=method, note="the differences have no spread")
    from scipy.special import stdtr

    standard_error = spread / math.sqrt(n)
    # P(T > (width - |mean|) / se): of the two tests the one on the mean's own side is the weaker.
    return p_value(float(stdtr(n - 1, (abs(mean) - width) / standard_error)), n=n, method=method)


@checked
def crossed_equivalence(
    table: ArrayLike,
    margin: float,
    *,
    method: Literal["bootstrap", "t"] = "bootstrap",
    n_resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """As :func:`equivalence_test` for the mean of a crossed table (rows, columns), by the two-way bootstrap.

    p is the smallest alpha whose (1 - 2 alpha) interval lies within the margin; with ``method`` "t" that of the two-way
    t, from 6 rows and columns on.
    """
    check_choice("method", method, TABLE_METHODS)
    if method == "t":
        return _crossed_t(table, margin)
    return _crossed_bootstrap(table, margin, n_resamples, seed)


def _crossed_t(table: ArrayLike, margin: float) -> Estimate:
    from scipy.special import stdtr

    from lm_audit.stats.means.two_way import FEWEST, two_way_variance

    method = "two-way t, two one-sided"
    cells, width = finite_table(table, "rows and columns"), number("margin", margin, low=0)
    if isinstance(cells, str) or isinstance(width, str):
        return no_p_value(cells if isinstance(cells, str) else str(width), method=method, n=np.size(table))
    if min(cells.shape[:2]) < FEWEST:
        return no_p_value(f"a {cells.shape[0]} x {cells.shape[1]} table is too small", method=method, n=cells.size)
    exponent = large_exponent(cells)
    scaled = np.ldexp(cells, -exponent)
    with np.errstate(all="ignore"):
        width = float(np.ldexp(width, -exponent))
    mean, (variance, df) = abs(float(scaled.mean())), two_way_variance(scaled)
    if math.sqrt(variance) <= rounding(scaled):
        inside = float(mean >= width - rounding(scaled))
        return p_value(inside, n=cells.size, method=method, note="the cells have no spread")
    return p_value(float(stdtr(df, (mean - width) / math.sqrt(variance))), n=cells.size, method=method)


def _crossed_bootstrap(table: ArrayLike, margin: float, n_resamples: int, seed: int) -> Estimate:
    method = f"two-way bootstrap, two one-sided, B={n_resamples}"
    cells, width = finite_table(table, "rows and columns"), number("margin", margin, low=0)
    if isinstance(cells, str) or isinstance(width, str):
        return no_p_value(cells if isinstance(cells, str) else str(width), method=method, n=np.size(table))
    if min(cells.shape[:2]) == 1:
        return no_p_value(f"a {cells.shape[0]} x {cells.shape[1]} table has no spread", method=method, n=cells.size)
    with np.errstate(all="ignore"):
        draws = crossed_distribution(cells, "mean", n_resamples=n_resamples, seed=seed)
    outside = max(int((draws >= width).sum()), int((draws <= -width).sum()))
    return p_value((1 + outside) / (1 + n_resamples), n=cells.size, method=method)


@checked
def within_margin(low: float | None, high: float | None, margin: float) -> bool | None:
    """Whether an interval lies wholly inside (-margin, margin); None where an end is missing."""
    if isinstance(reason := number("margin", margin), str):
        raise UsageError(reason)
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return -margin < low and high < margin
