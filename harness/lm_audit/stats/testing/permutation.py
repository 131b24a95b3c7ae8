"""Permutation tests: exact where all rearrangements can be counted, else Monte Carlo with p = (1 + k) / (1 + R).

A rearrangement whose statistic equals the observed one up to rounding counts as equal.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.resampling import BATCH_INDICES
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, finite_array, no_p_value, p_value, to_unit, two_groups

EXACT_LIMIT = 2**18
"""Up to this many rearrangements all are counted (18 differences, two groups of 10)."""


@checked
def sign_flip_test(differences: ArrayLike, *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """Two-sided p-value of "the differences are symmetric about 0", by flipping their signs; statistic: |mean|.

    Exact over all 2**n sign patterns for n <= 18. The smallest p that n differences can reach is 2 / 2**n.
    """
    values = finite_array(differences, "differences")
    if isinstance(values, str):
        return no_p_value(values, method="sign flip", n=np.size(differences))
    values = to_unit(values)
    observed, slack = abs(float(values.sum())), _slack(values)
    if 2 ** len(values) <= EXACT_LIMIT:
        sums = _all_signed_sums(values)
        share = float((np.abs(sums) >= observed - slack).mean())
        return p_value(share, n=len(values), method=f"sign flip, exact, {len(sums)} patterns")
    reached = _count_signed(values, observed - slack, n_resamples, np.random.default_rng(seed))
    method = f"sign flip, Monte Carlo, R={n_resamples}"
    return p_value((1 + reached) / (1 + n_resamples), n=len(values), method=method)


@checked
def permutation_test(a: ArrayLike, b: ArrayLike, *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """Two-sided p-value of "a and b come from one distribution", by moving values between them; |mean a - mean b|.

    Exact over all C(n_a + n_b, n_a) splits up to 2**18 of them.
    """
    groups = two_groups(a, b)
    n = np.size(a) + np.size(b)
    if isinstance(groups, str):
        return no_p_value(groups, method="two-sample permutation", n=n)
    size, pooled = len(groups[0]), to_unit(np.concatenate(groups))
    total, slack = float(pooled.sum()), _slack(pooled)
    # |mean a - mean b| grows with the distance of a's sum from its expectation.
    expected = total * size / n
    observed = abs(float(pooled[:size].sum()) - expected)
    if math.comb(n, size) <= EXACT_LIMIT:
        distances = np.abs(_all_subset_sums(pooled, size) - expected)
        share = float((distances >= observed - slack).mean())
        return p_value(share, n=n, method=f"two-sample permutation, exact, {len(distances)} splits")
    distances = np.abs(_random_subset_sums(pooled, size, n_resamples, np.random.default_rng(seed)) - expected)
    reached = int((distances >= observed - slack).sum())
    method = f"two-sample permutation, Monte Carlo, R={n_resamples}"
    return p_value((1 + reached) / (1 + n_resamples), n=n, method=method)


def _slack(values: Array) -> float:
    return 4 * len(values) * float(np.finfo(np.float64).eps) * float(np.abs(values).sum())


def _all_signed_sums(values: Array) -> Array:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _count_signed(values: Array, bound: float, n_resamples: int, rng: np.random.Generator) -> int:
    reached, batch = 0, max(1, BATCH_INDICES // len(values))
    for start in range(0, n_resamples, batch):
        signs = rng.integers(0, 2, (min(batch, n_resamples - start), len(values))) * 2 - 1
        reached += int((np.abs(signs @ values) >= bound).sum())
    return reached


def _all_subset_sums(pooled: Array, size: int) -> Array:
    subsets = np.array(list(combinations(range(len(pooled)), size)), dtype=np.int64)
    return np.asarray(pooled[subsets].sum(axis=1), dtype=np.float64)


def _random_subset_sums(pooled: Array, size: int, n_resamples: int, rng: np.random.Generator) -> Array:
    pieces, batch = [], max(1, BATCH_INDICES // len(pooled))
    for start in range(0, n_resamples, batch):
        shuffled = rng.permuted(np.tile(pooled, (min(batch, n_resamples - start), 1)), axis=1)
        pieces.append(shuffled[:, :size].sum(axis=1))
    return np.concatenate(pieces)
