"""Tests on crossed tables (templates x word pairs), where neither rows nor columns are independent items.

Permuting over one side alone rejects far too often; ``benchmarks/coverage_simulation.py`` measures by how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import check_choice
from lm_audit.stats.bootstrap.clustered import TABLE_METHODS, crossed_distribution, finite_table
from lm_audit.stats.bootstrap.limits import Resampled, bootstrap_interval, rescaled
from lm_audit.stats.bootstrap.resampling import counts_of, paired_batches
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, large_exponent, no_p_value, p_value, to_unit
from lm_audit.stats.means.two_way import ENOUGH, two_way_t
from lm_audit.stats.testing.permutation import sign_flip_test

MEAN_SQUARES = ("group", "group_template", "group_pair", "resid")


@dataclass(frozen=True, slots=True)
class ClusteredSignFlip:
    """Sign-flip p-values over row means and over column means; ``larger`` of the two is the one to report."""

    rows: Estimate
    columns: Estimate
    larger: Estimate


@dataclass(frozen=True, slots=True)
class CrossedContrast:
    """A contrast on a crossed table: mean with two-way interval, two-way p-value, sign-flip p-values."""

    difference: Estimate
    two_way: Estimate
    sign_flip: ClusteredSignFlip


@checked
def crossed_contrast(
    table: ArrayLike,
    minus: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    method: Literal["bootstrap", "t"] = "bootstrap",
    n_resamples: int = 9999,
    seed: int = 0,
) -> CrossedContrast:
    """The mean of a (rows, columns) table of differences, or of ``table - minus``, with everything tested about it.

    One set of two-way resamples serves interval and p-value, so that they never disagree; with fewer than 8 rows or
    columns, or ``method`` "t", the two-way t, which resamples nothing, and below 6 neither. Of 8 to 12 rows or columns
    the bootstrap covers 91% to 100%, the t 94% to 99%. NaN or infinity: no values.
    """
    check_choice("method", method, TABLE_METHODS)
    if minus is not None and np.shape(minus) != np.shape(table):
        raise UsageError(f"table has shape {np.shape(table)} and minus {np.shape(minus)}; give both the same")
    with np.errstate(all="ignore"):
        cells = finite_table(table if minus is None else np.subtract(table, minus), "rows and columns")
    flips = clustered_sign_flip(cells if not isinstance(cells, str) else table, seed=seed)
    if isinstance(cells, str) or min(cells.shape) == 1:
        reason = cells if isinstance(cells, str) else f"a {cells.shape[0]} x {cells.shape[1]} table has no spread"
        missing = no_p_value(reason, method="two-way bootstrap", n=np.size(table))
        difference = Estimate.not_estimable(reason, n=np.size(table), method="two-way bootstrap", confidence=confidence)
        return CrossedContrast(difference, missing, flips)
    if method == "t" or min(cells.shape) < ENOUGH:
        exponent = large_exponent(cells)
        found, p = two_way_t(np.ldexp(cells, -exponent), confidence)
        return CrossedContrast(rescaled(found, exponent), p, flips)
    with np.errstate(all="ignore"):
        draws = crossed_distribution(cells, "mean", n_resamples=n_resamples, seed=seed)
        scheme = f"{cells.shape[0]} rows x {cells.shape[1]} columns"
        units = min(cells.shape)
        resampled = Resampled(float(cells.mean()), draws, cells.size, scheme, units=units, fewest=FEWEST_CLUSTERS)
        difference = bootstrap_interval(resampled, confidence=confidence, method="percentile")
    return CrossedContrast(difference, _p_of_draws(draws, cells.size), flips)


@checked
def two_way_p_value(table: ArrayLike, *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """Two-sided p-value of "the table's mean is 0": the smallest alpha whose two-way interval excludes 0."""
    return crossed_contrast(table, n_resamples=n_resamples, seed=seed).two_way


@checked
def clustered_sign_flip(table: ArrayLike, *, seed: int = 0) -> ClusteredSignFlip:
    """Sign-flip tests of a (rows, columns) table of differences over its row means and its column means.

    Exact up to 18 clusters. The smallest p that T clusters can reach is 2 / 2**T.
    """
    cells = finite_table(table, "rows and columns")
    if isinstance(cells, str):
        missing = no_p_value(cells, method="clustered sign flip", n=np.size(table))
        return ClusteredSignFlip(missing, missing, missing)
    rows, columns = (sign_flip_test(to_unit(cells).mean(axis=axis), seed=seed) for axis in (1, 0))
    return ClusteredSignFlip(rows, columns, _larger(rows, columns, ("rows", "columns")))


@checked
def max_min(values: ArrayLike) -> float:
    """Largest minus smallest group mean of values (groups, rows, columns); ``UsageError`` for cells not finite."""
    cells = finite_table(values, "groups, rows and columns")
    if isinstance(cells, str):
        raise UsageError(f"{cells}: there is no largest difference")
    with np.errstate(over="ignore"):
        return float(np.ptp(cells.mean(axis=(1, 2))))


@checked
def max_min_permutation(values: ArrayLike, *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """p-value of "all groups are alike" by the max-min disparity of values (groups, templates, pairs).

    Group labels are permuted within each template jointly over all pairs, then within each pair over all templates;
    p = (1 + k) / (1 + R), the larger of the two, both in the note. Each clustering leaves out the other's variance, so
    that even the larger p rejects too often: :func:`max_min_two_way` keeps the level.
    """
    method = f"max-min permutation, larger of two clusterings, R={n_resamples}"
    cells = finite_table(values, "groups, rows and columns")
    if isinstance(cells, str):
        return no_p_value(cells, method=method, n=np.size(values))
    if cells.shape[0] < 2:
        return no_p_value(f"{cells.shape[0]} group(s), at least 2 are needed", method=method, n=cells.size)
    cells, rng = to_unit(cells), np.random.default_rng(seed)
    by_template = _max_min_p(cells.mean(axis=2), n_resamples, rng)
    by_pair = _max_min_p(cells.mean(axis=1), n_resamples, rng)
    note = f"within templates p = {by_template:.4g}, within pairs p = {by_pair:.4g}"
    return p_value(max(by_template, by_pair), n=cells.size, method=method, note=note)


@checked
def max_min_two_way(values: ArrayLike, *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """p-value of "all groups are alike" by the max-min disparity of values (groups, templates, pairs), two-way
    bootstrap.

    Templates and pairs are resampled independently, for all groups at once; the disparity of the groups' deviations
    from their own means is its distribution without a group effect. p = (1 + k) / (1 + B).
    """
    method = f"max-min, two-way bootstrap, B={n_resamples}"
    cells = finite_table(values, "groups, rows and columns")
    if isinstance(cells, str):
        return no_p_value(cells, method=method, n=np.size(values))
    if min(cells.shape) < 2:
        return no_p_value(f"shape {cells.shape}: every axis needs at least 2", method=method, n=cells.size)
    cells = to_unit(cells)
    means = cells.mean(axis=(1, 2))
    # Deviations within rounding of the observed disparity count as reaching it, so that groups all alike give p = 1.
    bound = float(np.ptp(means)) - 8 * float(np.finfo(np.float64).eps)
    reached = 0
    for rows, columns in paired_batches(seed, cells.shape[1], cells.shape[2], n_resamples, width=cells.size):
        by_row = np.tensordot(counts_of(rows, cells.shape[1]), cells, axes=(1, 1))
        resampled = np.einsum("bgp,bp->bg", by_row, counts_of(columns, cells.shape[2])) / cells[0].size
        reached += int((np.ptp(resampled - means, axis=1) >= bound).sum())
    return p_value((1 + reached) / (1 + n_resamples), n=cells.size, method=method)


@checked
def grid_mean_squares(values: ArrayLike) -> dict[str, float | None]:
    """Mean squared effects of values (groups, templates, pairs), centred over groups in each cell.

    Keys: group, group_template, group_pair, resid. They say where a grid's variance lives, in the unit squared; None
    where the values are not finite or their squares exceed the range of floats.
    """
    cells = finite_table(values, "groups, rows and columns")
    if isinstance(cells, str):
        return dict.fromkeys(MEAN_SQUARES)
    with np.errstate(all="ignore"):
        squares = {name: float((effects**2).mean()) for name, effects in _effects(cells).items()}
    return {name: value if math.isfinite(value) else None for name, value in squares.items()}


def _effects(cells: Array) -> dict[str, Array]:
    centred = cells - cells.mean(axis=0)
    group = centred.mean(axis=(1, 2))
    template = centred.mean(axis=2) - group[:, None]
    pair = centred.mean(axis=1) - group[:, None]
    rest = centred - group[:, None, None] - template[:, :, None] - pair[:, None, :]
    return dict(zip(MEAN_SQUARES, (group, template, pair, rest), strict=True))


def _p_of_draws(draws: Array, n: int) -> Estimate:
    below, above = int((draws <= 0).sum()), int((draws >= 0).sum())
    value = min(1.0, 2 * (1 + min(below, above)) / (1 + len(draws)))
    return p_value(value, n=n, method=f"two-way bootstrap, B={len(draws)}")


def _larger(first: Estimate, second: Estimate, names: tuple[str, str]) -> Estimate:
    if first.value is None or second.value is None:
        return no_p_value(first.note or second.note or "", method="clustered sign flip")
    note = f"over {names[0]} p = {first.value:.4g}, over {names[1]} p = {second.value:.4g}"
    return p_value(
        max(first.value, second.value), n=first.n or 0, method="clustered sign flip, larger of two", note=note
    )


def _max_min_p(means: Array, n_resamples: int, rng: np.random.Generator) -> float:
    """``means`` has shape (groups, clusters); labels are permuted within each cluster."""
    observed = float(np.ptp(means.mean(axis=1)))
    slack = 8 * float(np.finfo(np.float64).eps) * float(np.abs(means).max())
    reached, batch = 0, max(1, 2**20 // means.size)
    for start in range(0, n_resamples, batch):
        clusters = np.broadcast_to(means.T, (min(batch, n_resamples - start), *means.T.shape))
        permuted = rng.permuted(clusters, axis=2).mean(axis=1)
        reached += int((np.ptp(permuted, axis=1) >= observed - slack).sum())
    return (1 + reached) / (1 + n_resamples)
