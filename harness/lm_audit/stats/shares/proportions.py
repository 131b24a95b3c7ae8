"""Intervals for shares, and the exact test of paired yes-no answers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import cluster_numbers, first_reason, no_p_value, p_value, paired_arrays, whole


@checked
def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> Estimate:
    """The share k / n with its exact (Clopper-Pearson 1934) interval, which never covers less than it says.

    n = 0, k > n or a count that is no whole number give no value.
    """
    return _share(k, n, confidence, "exact", "Clopper-Pearson")


@checked
def wilson(k: int, n: int, confidence: float = 0.95) -> Estimate:
    """The share k / n with Wilson's score interval (1927, no continuity correction), which covers its level on average.

    n = 0, k > n or a count that is no whole number give no value.
    """
    return _share(k, n, confidence, "wilson", "Wilson")


@checked
def mcnemar_exact(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | ArrayLike | None = None, *, seed: int = 0
) -> Estimate:
    """Two-sided exact McNemar p-value of paired yes-no answers (truth values, 0 or 1), by the discordant pairs only.

    With ``clusters`` (one label a pair: several draws of a request) the pairs of a cluster change sides together: the
    sign flip of the clusters' sums, exact up to 18 clusters that differ. The note counts both kinds of discordant
    pairs. Without any, p = 1. ``UsageError`` where lengths differ.
    """
    method = "McNemar, exact"
    pair = paired_arrays(a, b)
    if isinstance(pair, str):
        return no_p_value(pair, method=method, n=np.size(a))
    if not all(np.isin(side, (0.0, 1.0)).all() for side in pair):
        return no_p_value("answers must be 0 or 1", method=method, n=len(pair[0]))
    gained, lost = int((pair[1] > pair[0]).sum()), int((pair[1] < pair[0]).sum())
    note = f"gained {gained}, lost {lost}"
    if clusters is None:
        return p_value(sign_test_p(gained, lost), n=len(pair[0]), method=method, note=note)
    from lm_audit.stats.testing.permutation import sign_flip_test

    labels = cluster_numbers(clusters)
    if len(labels) != len(pair[0]):
        raise UsageError(f"there are {len(pair[0])} pairs and {len(labels)} cluster labels")
    sums = np.bincount(labels, weights=pair[1] - pair[0])
    flipped = sign_flip_test(sums[sums != 0], seed=seed) if sums.any() else None
    method = f"McNemar, {len(sums)} clusters change sides"
    return p_value(1.0 if flipped is None else flipped.value or 1.0, n=len(pair[0]), method=method, note=note)


def sign_test_p(positive: int, negative: int) -> float:
    """Two-sided exact sign test on counts of differences that are not zero; 1 without any."""
    from scipy.stats import binomtest

    return float(binomtest(positive, positive + negative, 0.5).pvalue) if positive + negative else 1.0


def _share(k: object, n: object, confidence: float, kind: Literal["exact", "wilson"], method: str) -> Estimate:
    total = whole("n", n, low=0, high=2**53)
    hits = whole("k", k, low=0, high=total) if isinstance(total, int) else "n is unusable"
    reason = first_reason((total, hits)) or ("n is 0: no share" if total == 0 else None)
    if reason or isinstance(total, str) or isinstance(hits, str):
        return Estimate.not_estimable(reason or "", n=0 if total == 0 else None, method=method, confidence=confidence)
    low, high = _wilson_limits(hits, total, confidence) if kind == "wilson" else _exact_limits(hits, total, confidence)
    fewest = 1 if kind == "exact" else None
    return Estimate(hits / total, low, high, n=total, confidence=confidence, method=method, unit="share", fewest=fewest)


def _exact_limits(k: int, n: int, confidence: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return min(low, k / n), max(high, k / n)


def _wilson_limits(k: int, n: int, confidence: float) -> tuple[float, float]:
    from scipy.stats import binomtest

    limits = binomtest(k, n).proportion_ci(confidence, method="wilson")
    return min(float(limits.low), k / n), max(float(limits.high), k / n)


@checked
def share_difference(k_a: int, n_a: int, k_b: int, n_b: int, confidence: float = 0.95) -> Estimate:
    """The difference of two independent shares, b minus a, with Newcombe's (1998) interval from Wilson's limits."""
    a, b = wilson(k_a, n_a, confidence), wilson(k_b, n_b, confidence)
    method = "Newcombe"
    if a.value is None or b.value is None:
        return Estimate.not_estimable(a.note or b.note or "", method=method, confidence=confidence)
    assert a.low is not None and a.high is not None and b.low is not None and b.high is not None
    difference = b.value - a.value
    low = difference - float(np.hypot(b.value - b.low, a.high - a.value))
    high = difference + float(np.hypot(b.high - b.value, a.value - a.low))
    n, units = int(n_a) + int(n_b), min(int(n_a), int(n_b))
    return Estimate(difference, low, high, n=n, confidence=confidence, method=method, unit="share", units=units)
