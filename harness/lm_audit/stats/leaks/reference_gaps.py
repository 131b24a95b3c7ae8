"""How far the references that happened to be drawn move the mean exposure of canaries that are ranked among them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from lm_audit.stats.inputs import Array, Integers

_POINTS = 257
_REACH = 10
"""Standard deviations of a count beyond which nothing of its mean lies."""


def reference_limits(
    ahead: Integers, references: int, *, confidence: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Limits in bits for the mean exposure of these canaries among other references of the same number.

    ``ahead`` [canaries]: how many references rank before each. In shares of all secrets the gaps between n references
    are those between n uniform draws, that is Dirichlet(1, ..., 1) (Wilks 1962, 8.7; the Bayesian bootstrap of Rubin
    1981), whatever the losses' distribution: they are drawn, and the expected bits of a canary are those of the share
    before it. Where in its gap a canary stands no rank tells: the lower limit takes the middle, the upper one the end
    that leaks most, so that a canary before all references may be before almost all secrets. A jackknife or bootstrap
    of the references knows nothing of the gap before the first of them, and covers 75 to 92 % with many canaries there.
    """
    gaps, canaries = np.unique(ahead, return_counts=True)
    shares = canaries / canaries.sum()
    bounds = np.unique(np.concatenate([[0], gaps, gaps + 1, [references + 1]]))
    drawn = np.random.default_rng(seed).standard_gamma(np.diff(bounds), size=(n_resamples, len(bounds) - 1))
    place = np.concatenate([np.zeros((n_resamples, 1)), np.cumsum(drawn, axis=1)], axis=1)
    place /= place[:, -1:]
    at = np.searchsorted(bounds, gaps)
    first, middle = place[:, at], (place[:, at] + place[:, at + 1]) / 2
    tail = (1 - confidence) / 2
    points, bits = _expected_bits(references)
    low, high = (np.interp(where, points, bits) @ shares for where in (middle, first))
    return float(np.quantile(low, tail)), float(np.quantile(high, 1 - tail))


@lru_cache(maxsize=16)
def _expected_bits(references: int) -> tuple[Array, Array]:
    """Shares of all secrets before a canary, and its expected exposure in bits among that many references."""
    from scipy.stats import binom

    points = np.concatenate([[0.0], np.geomspace(0.01 / (references + 1), 1.0, _POINTS)])
    bits = np.empty(len(points))
    for index, share in enumerate(points):
        mean, reach = references * share, _REACH * math.sqrt(references * share * (1 - share)) + _REACH
        counts = np.arange(max(0, math.floor(mean - reach)), min(references, math.ceil(mean + reach)) + 1)
        bits[index] = binom.pmf(counts, references, share) @ (math.log2(references + 1) - np.log2(1 + counts))
    return points, bits
