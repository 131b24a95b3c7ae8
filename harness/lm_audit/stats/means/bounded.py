"""The mean of values that cannot leave a range: shares of a few draws, exposures under their cap."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.bootstrap.resampling import BATCH_INDICES
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, finite_array
from lm_audit.stats.shares.proportions import clopper_pearson

METHOD = "mean, Gaffke's interval for bounded values"


@checked
def bounded_mean(
    values: ArrayLike,
    low: float = 0.0,
    high: float = 1.0,
    *,
    weights: ArrayLike | None = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """The mean of independent values in [``low``, ``high``] with an interval that has a width even where all are equal.

    Gaffke's (2005) limits: the quantiles of the mean under Dirichlet(1, ..., 1) weights on the n values and one more at
    the end of the range. For values at both ends only they are Clopper-Pearson's, which are computed exactly; for all
    others they cover at least as often as they say in every case that was tried (Learned-Miller and Thomas 2020; here
    ``benchmarks/coverage_privacy.py``). Fewer than 8 values give no interval; a value outside the range gives no value.

    ``weights`` (n,), above 0, make it a weighted mean; the further value at the end of the range then weighs what a
    unit of weight does on average, the sum of squares over the sum, so that a heavy value not yet seen is allowed for
    (``benchmarks/coverage_leakage.py``). Raises ``UsageError`` for other weights.
    """
    if None in (low, high) or not -math.inf < low < high < math.inf:
        raise UsageError(f"the range must have two finite ends, the lower one first, got {low} and {high}")
    found = finite_array(values)
    if isinstance(found, str):
        return Estimate.not_estimable(found, n=np.size(values), method=METHOD, confidence=confidence)
    parts = None if weights is None else _parts(weights, len(found))
    if found.min() < low or found.max() > high:
        reason = f"values from {found.min():g} to {found.max():g} leave the range [{low:g}, {high:g}]"
        return Estimate.not_estimable(reason, n=len(found), method=METHOD, confidence=confidence)
    mean = float(found.mean() if parts is None else parts @ found)
    whole = Estimate(float(np.clip(mean, found.min(), found.max())), n=len(found), confidence=confidence, method=METHOD)
    if len(found) < FEWEST:
        return replace(whole, note=f"{len(found)} values give no interval, {FEWEST} do")
    options: dict[str, Any] = {"confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    bottom, top = bounded_limits(found, low, high, parts=parts, **options)
    return replace(whole, low=bottom, high=top)


def bounded_limits(
    values: Array,
    low: float,
    high: float,
    *,
    confidence: float,
    n_resamples: int,
    seed: int,
    parts: Array | None = None,
) -> tuple[float, float]:
    """The limits of :func:`bounded_mean`, for values that were checked; ``parts`` are weights that add up to 1."""
    if parts is not None and np.ptp(parts) <= 1e-12:
        parts = None
    if parts is None and np.isin(values, (low, high)).all():
        share = clopper_pearson(int((values == high).sum()), len(values), confidence)
        assert share.low is not None and share.high is not None
        return low + (high - low) * share.low, low + (high - low) * share.high
    tail, order = (1 - confidence) / 2, np.argsort(values, kind="stable")
    ordered = values[order]
    if parts is None:
        lower, upper = _weighted_means(np.r_[low, ordered], np.r_[ordered, high], n_resamples, seed)
        mean = float(values.mean())
    else:
        further = float((parts**2).sum())
        own = np.r_[further, parts[order]]
        lower, upper = _weighted_means(np.r_[low, ordered], np.r_[high, ordered], n_resamples, seed, own)
        mean = float(parts @ values)
    return min(mean, float(np.quantile(lower, tail))), max(mean, float(np.quantile(upper, 1 - tail)))


def _parts(weights: ArrayLike, n: int) -> Array:
    """Weights that add up to 1."""
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (n,) or not np.isfinite(given).all() or (given <= 0).any():
        raise UsageError(f"weights must be {n} finite numbers above 0, one a value")
    parts: Array = given / given.sum()
    return parts


def _weighted_means(
    below: Array, above: Array, n_resamples: int, seed: int, own: Array | None = None
) -> tuple[Array, Array]:
    """The two columns of values under the same Dirichlet weights, times the values' ``own``, one mean a resample."""
    rng, pieces = np.random.default_rng(seed), []
    batch = max(1, BATCH_INDICES // len(below))
    for start in range(0, n_resamples, batch):
        weights = rng.standard_exponential((min(batch, n_resamples - start), len(below)))
        if own is not None:
            weights *= own
        weights /= weights.sum(axis=1, keepdims=True)
        pieces.append(weights @ np.column_stack([below, above]))
    both = np.concatenate(pieces)
    return both[:, 0], both[:, 1]
