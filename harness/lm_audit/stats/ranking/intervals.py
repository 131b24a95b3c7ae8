"""Intervals of an AUC and of a TPR at a limited FPR that cover with few members and near 1."""

from __future__ import annotations

import math

import numpy as np

from lm_audit.stats.inputs import Array, Integers
from lm_audit.stats.shares.proportions import clopper_pearson


def auc_limits(
    value: float, parts: tuple[float, float], sizes: tuple[int, int], confidence: float
) -> tuple[float, float]:
    """Limits of an AUC: Wilson's for a share of as many values as have the AUC's variance.

    ``parts`` are DeLong's variances of the two sides, ``sizes`` their numbers. That estimate is far too small where few
    scores are out of order (and 0 where none is), Hanley and McNeil's (1982) for exponential scores, of which those of
    either side may be the more spread, mostly too large: their mean is taken, and no less than DeLong's own, with
    Student's quantile. Source: Kottas, Kuss and Zapf 2014, "A modified Wald interval for the
    area under the ROC curve", for the shares.
    """
    from scipy.special import stdtrit

    m, n = sizes
    smaller = min(m, n)
    variance = sum(parts)
    near = min(max(value, 0.25 / smaller), 1 - 0.25 / smaller)
    degenerate = variance <= 0 or not 0 < value < 1
    below = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    df = smaller - 1 if degenerate else max(1.0, variance**2 / below)
    exponential = max(hanley_mcneil_variance(near, m, n), hanley_mcneil_variance(near, n, m))
    known = max(variance, (variance + exponential) / 2)
    count = smaller if degenerate else max(1.0, near * (1 - near) / known)
    z = float(stdtrit(df, (1 + confidence) / 2))
    centre = (value + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(value * (1 - value) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return max(0.0, min(value, centre - half)), min(1.0, max(value, centre + half))


def hanley_mcneil_variance(auc: float, members: int, controls: int) -> float:
    """The variance of an AUC of exponential scores (Hanley and McNeil 1982), by the side of 0.5 that is above it."""
    a = max(auc, 1 - auc)
    q1, q2 = a / (2 - a), 2 * a**2 / (1 + a)
    return (a * (1 - a) + (members - 1) * (q1 - a**2) + (controls - 1) * (q2 - a**2)) / (members * controls)


def expected_average_precision(members: int, total: int) -> float:
    """The mean average precision of a random order: (m - 1) / (N - 1) (1 - H_N / N) + H_N / N, H_N the N-th harmonic
    number; above the share of members, most of all with few of them. Source: Bestgen 2015.
    """
    from scipy.special import digamma

    harmonic = float(digamma(total + 1)) + float(np.euler_gamma)
    if total == 1:
        return 1.0
    return (members - 1) / (total - 1) * (1 - harmonic / total) + harmonic / total


FEW_ALLOWED = 4
"""False positives from which on resampled thresholds reach the true one: that no control lies above it has then less
than 2.5 % chance."""

_TAIL = 20
"""Highest controls from whose spacing the threshold beyond all of them is told."""


def tpr_limits(members: Array, controls: Array, fpr: float, allowed: int, confidence: float) -> tuple[float, float]:
    """Limits of the TPR at the threshold that ``fpr`` of all controls would pass, ``allowed`` of these; both sides are
    samples.

    With four or more allowed: the bootstrap's percentiles (both sides resampled; computed exactly), or those of Clopper
    and Pearson at the threshold as it is where they reach further. With one to three: theirs at the thresholds between
    which the true one lies with 90 %: order statistics, or beyond the highest control the highest plus what an
    exponential tail adds, or the widest gap between the highest where these are tied. Where the control at the
    threshold is tied with another, whatever is allowed, the same: the true threshold is then one of few values, and
    resamples often hold one of them only. With none allowed: at the threshold as it is.
    """
    m, n = len(members), len(controls)
    ordered = np.sort(controls)[::-1]
    if 0 < allowed < n and (allowed < FEW_ALLOWED or ordered[allowed] in ordered[allowed - 1 : allowed + 2 : 2]):
        low, high = (
            clopper_pearson(int((members > end).sum()), m, confidence) for end in _thresholds(ordered, fpr * n)
        )
        assert low.low is not None and high.high is not None
        return low.low, high.high
    detected = (members[None, :] > ordered[:, None]).sum(axis=1)
    at = clopper_pearson(int(detected[min(allowed, n - 1)]) if allowed < n else m, m, confidence)
    assert at.low is not None and at.high is not None
    if allowed == 0 or allowed >= n:
        return at.low, at.high
    return _resampled_limits(detected, m, allowed, confidence, (at.low, at.high))


def _thresholds(ordered: Array, expected: float) -> tuple[float, float]:
    """The highest and the lowest threshold that ``expected`` false positives may stand for, each with 95 %."""
    from scipy.stats import poisson

    # The k-th largest control lies below the true threshold where fewer than k pass it.
    first, last = int(poisson.ppf(0.05, expected)), int(poisson.ppf(0.95, expected))
    lowest = float(ordered[min(last, len(ordered) - 1)])
    if first >= 1:
        return float(ordered[first - 1]), lowest
    tail = min(_TAIL, len(ordered) - 1)
    with np.errstate(over="ignore"):
        scale = float((ordered[:tail] - ordered[tail]).mean()) if tail else 0.0
        beyond = scale * max(0.0, math.log(-math.log(0.05) / expected))
        gaps = -np.diff(ordered[: tail + 1])
        if (gaps == 0).any():
            beyond = max(beyond, float(gaps.max()))
    return float(ordered[0]) + beyond, lowest


def _resampled_limits(
    detected: Integers, m: int, allowed: int, confidence: float, at: tuple[float, float]
) -> tuple[float, float]:
    from scipy.stats import binom

    # The threshold of a resample is at most the i-th largest control where more than ``allowed`` draws are among these.
    n = len(detected)
    reached = binom.sf(allowed, n, np.arange(1, n + 1) / n)
    weights = np.diff(np.concatenate([[0.0], reached]))
    used = weights > 1e-12
    counts = np.arange(m + 1)
    spread = np.cumsum((weights[used, None] * binom.pmf(counts, m, detected[used, None] / m)).sum(axis=0))
    tail = (1 - confidence) / 2
    low_share, high_share = (int(np.searchsorted(spread, share)) / m for share in (tail, 1 - tail))
    return min(at[0], low_share), max(at[1], min(1.0, high_share))
