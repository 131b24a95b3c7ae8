"""Intervals of an AUC and of a TPR at a limited FPR that cover with few members and near 1."""

from __future__ import annotations

import math

import numpy as np

from lm_audit.stats.inputs import Array
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


_TAIL = 20
"""Highest controls from whose spacing the threshold beyond all of them is told."""


def tpr_limits(members: Array, controls: Array, fpr: float, allowed: int, confidence: float) -> tuple[float, float]:
    """Limits of the TPR at the threshold that ``fpr`` of all controls would pass, ``allowed`` of these; both sides are
    samples.

    How many controls lie above the true threshold is binomial, and so it is known with what chance it lies between any
    two of them. The limits are Clopper and Pearson's, averaged over these places and over both ends of each; above all
    controls it lies no further than an exponential tail would put it. Where the control at the threshold is tied with
    another, the true threshold is one of few values: the limits are then those at the highest and the lowest that it
    may be with 90 %. With none allowed: at the threshold as it is.
    """
    m, n = len(members), len(controls)
    ordered = np.sort(controls)[::-1]
    if 0 < allowed < n and ordered[allowed] not in ordered[allowed - 1 : allowed + 2 : 2]:
        low, high = _averaged_limits(members, ordered, fpr, confidence)
        at = float((members > ordered[allowed]).mean())
        return min(low, at), max(high, at)
    ends = _thresholds(ordered, fpr * n) if 0 < allowed < n else [float(ordered[0]) if not allowed else -math.inf] * 2
    least, most = (clopper_pearson(int((members > end).sum()), m, confidence) for end in ends)
    assert least.low is not None and most.high is not None
    return least.low, most.high


def _averaged_limits(members: Array, ordered: Array, fpr: float, confidence: float) -> tuple[float, float]:
    from scipy.optimize import brentq
    from scipy.special import betainc
    from scipy.stats import binom

    m, n = len(members), len(ordered)
    above = np.arange(int(binom.isf(1e-6, n, fpr)) + 1)
    chances = binom.pmf(above, n, fpr) / binom.cdf(above[-1], n, fpr) / 2
    with np.errstate(over="ignore"):
        # Beyond all controls in 95 % of the cases in which it is.
        furthest = ordered[0] + _scale(ordered) * math.log1p(-math.log(0.05) / (fpr * n))
    places = np.concatenate([[furthest], ordered[above[:-1]], ordered[np.minimum(above, n - 1)]])
    found = (members[None, :] > places[:, None]).sum(axis=1)
    chances, tail = np.concatenate([chances, chances]), (1 - confidence) / 2

    def least(share: float) -> float:
        return float(chances @ np.where(found > 0, betainc(np.maximum(found, 1), m - found + 1, share), 1.0)) - tail

    def most(share: float) -> float:
        return tail - float(chances @ np.where(found < m, 1 - betainc(found + 1, np.maximum(m - found, 1), share), 1.0))

    return brentq(least, 0, 1) if least(0) < 0 else 0.0, brentq(most, 0, 1) if most(1) > 0 else 1.0


def _thresholds(ordered: Array, expected: float) -> tuple[float, float]:
    """The highest and the lowest threshold that ``expected`` false positives may stand for, each with 95 %."""
    from scipy.stats import poisson

    # The k-th largest control lies below the true threshold where fewer than k pass it.
    first, last = int(poisson.ppf(0.05, expected)), int(poisson.ppf(0.95, expected))
    lowest = float(ordered[min(last, len(ordered) - 1)])
    if first >= 1:
        return float(ordered[first - 1]), lowest
    with np.errstate(over="ignore"):
        beyond = _scale(ordered) * max(0.0, math.log(-math.log(0.05) / expected))
        gaps = -np.diff(ordered[: _TAIL + 1])
        if (gaps == 0).any():
            beyond = max(beyond, float(gaps.max()))
    return float(ordered[0]) + beyond, lowest


def _scale(ordered: Array) -> float:
    """The mean by which the highest controls lie above the last of them, that of an exponential tail."""
    tail = min(_TAIL, len(ordered) - 1)
    return float((ordered[:tail] - ordered[tail]).mean()) if tail else 0.0
