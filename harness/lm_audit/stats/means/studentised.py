"""The mean of independent values with a bootstrap-t interval, which follows a skew that a t interval does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.resampling import index_batches
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, finite_array
from lm_audit.stats.means.skewed import SPARED, growth, remark, skewness

METHOD = "mean, bootstrap-t, B={}"


@checked
def studentised_mean(
    values: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 1999, seed: int = 0
) -> Estimate:
    """The mean of ``values`` (n,) with limits from the bootstrap distribution of the t statistic.

    Of skewed values (log-probabilities, similarities) a t interval of 8 covers 90 %, this one 94; of even ones both 95.
    Towards the longer tail it reaches further than the resamples tell (:mod:`lm_audit.stats.means.skewed`), on neither
    side less far than the t interval.
    Fewer than two values, or equal ones, give no interval, and the note says why. Source: Hall 1988; Efron 1981.
    """
    array, method = finite_array(values), METHOD.format(n_resamples)
    if isinstance(array, str):
        return Estimate.not_estimable(array, n=np.size(values), method=method, confidence=confidence)
    n, mean = len(array), float(array.mean())
    if n < 2 or np.ptp(array) <= 4 * np.finfo(np.float64).eps * float(np.abs(array).max()):
        note = "one value has no spread" if n < 2 else "all values are equal: nothing tells how far chance reaches"
        return Estimate(mean, n=n, confidence=confidence, method=method, note=note)
    error = float(array.std(ddof=1)) / n**0.5
    pivots = np.sort(_pivots((array - mean) / error, n_resamples, seed))
    skew = skewness(array / np.abs(array).max())
    down, up = growth(skew, n, spared=SPARED)
    below, above = (int(share * (n_resamples + 1)) for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    low, high = float(pivots[max(0, below - 1)]), float(pivots[min(n_resamples - 1, above - 1)])
    if not np.isfinite([low, high]).all():
        # Resamples of one value only: there are too few different values to estimate a spread from.
        return Estimate(
            mean, n=n, confidence=confidence, method=method, note="too few different values to estimate their spread"
        )
    from scipy.special import stdtrit

    # Of heavy tails on both sides the resamples' own are too short.
    even = float(stdtrit(n - 1, (1 + confidence) / 2))
    return Estimate(
        mean,
        mean - down * max(high, even) * error,
        mean + up * max(-low, even) * error,
        n=n,
        confidence=confidence,
        method=method,
        note=remark(skew, n),
    )


def _pivots(scaled: Array, n_resamples: int, seed: int) -> Array:
    """The t statistics of the resamples; without spread, infinite on the side of the mean."""
    pieces = []
    for rows in index_batches(np.random.default_rng(seed), len(scaled), n_resamples):
        drawn = scaled[rows]
        means, errors = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / len(scaled) ** 0.5
        flat = errors <= 1e-12 * np.abs(scaled).max()
        pieces.append(np.where(flat, np.copysign(np.inf, means), means / np.where(flat, 1.0, errors)))
    return np.concatenate(pieces)
