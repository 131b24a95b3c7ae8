"""The share of answers that have a property, with one interval for every audit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.effective_number import effective_number
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, cluster_numbers, finite_array
from lm_audit.stats.means.cluster_robust import cluster_deviations, cluster_variance
from lm_audit.stats.means.skewed import growth, skewness

METHOD = "Clopper-Pearson"

LEAST_EVEN = 0.7
"""What clusters of unequal sizes add to the variance counts by as much more as they are fewer in effect, and by no more
than 1 / 0.7: the degrees of freedom know of it too. Without a limit 77 writers of CrowS-Pairs (25 in effect) gave
intervals of twice the width, which covered 100 %."""


@checked
def share(
    values: ArrayLike,
    clusters: Sequence[Hashable] | ArrayLike | None = None,
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of answers between 0 and 1 (no and yes, or parts) with an interval that never shrinks to a point.

    ``values`` and ``clusters`` (one label a value) have shape (n,); ``scale`` is 100 for per cent. Without clusters the
    limits are those of Clopper and Pearson (1934): 0 of n has the upper limit 1 - (alpha/2)^(1/n). Parts count as a
    yes-no answer of the same mean, than which no value between 0 and 1 varies more. With clusters it is their interval
    at the effective number of answers, n over the design effect (Korn and Graubard 1998), whose variance is CR2 and
    whose degrees of freedom are Satterthwaite's. What clusters of unequal sizes add to it counts by as much more as
    they are fewer in effect, up to 1 / 0.7; with fewer than 6 in effect all of it does, without a limit. Which clusters
    hold the answers, small ones or large, is taken for chance, and on the side of the clusters' longer tail it is more
    again (:mod:`lm_audit.stats.means.skewed`). Clusters of one answer each are none. Where all agree, no spread tells
    that number and it is the effective number of clusters. Fewer than 6 clusters that differ give no interval.
    Raises ``UsageError`` where lengths differ; a value outside [0, 1] gives no value.
    """
    unit = "%" if scale == 100 else "share"
    found = finite_array(values)
    if isinstance(found, str):
        return Estimate.not_estimable(found, n=np.size(values), method=METHOD, confidence=confidence, unit=unit)
    if found.min() < 0 or found.max() > 1:
        reason = f"answers lie between {found.min():g} and {found.max():g}, a share needs 0 to 1"
        return Estimate.not_estimable(reason, n=len(found), method=METHOD, confidence=confidence, unit=unit)
    if clusters is None:
        return _estimate(found, float(len(found)), None, scale, confidence, METHOD)
    labels = cluster_numbers(clusters)
    if len(labels) != len(found):
        raise UsageError(f"values has {len(found)} elements, clusters has {len(labels)} labels")
    return _clustered(found, labels, scale, confidence)


def _clustered(found: Array, labels: Integers, scale: float, confidence: float) -> Estimate:
    count = int(labels.max()) + 1
    if count == len(found) and count >= FEWEST_CLUSTERS:
        # A cluster each is no cluster: nothing is to be estimated of how answers hang together.
        return _estimate(found, float(count), count, scale, confidence, f"{METHOD} of {count} clusters of one answer")
    mean, sizes = float(found.mean()), np.bincount(labels).astype(np.float64)
    even = effective_number(sizes) / count
    variance, freedom = cluster_variance(found, labels)
    if variance <= (1e-12 if 0 < mean < 1 else math.inf):
        method = f"{METHOD} over {count} clusters that agree"
        return _estimate(found, even * count, count, scale, confidence, method)
    if count < FEWEST_CLUSTERS:
        reason = f"{count} clusters give no interval, {FEWEST_CLUSTERS} do"
        return Estimate(
            scale * mean, n=len(found), confidence=confidence, method=METHOD, unit=_unit(scale), note=reason,
            units=count, fewest=FEWEST_CLUSTERS,
        )  # fmt: skip
    from scipy.stats import t

    alone = mean * (1 - mean) / len(found)
    # Which clusters hold the answers, small ones or large, is chance where few do: how far their shares differ beyond
    # what single answers do counts for clusters of every size.
    rates = np.bincount(labels, weights=found) / sizes
    between = max(0.0, float(sizes @ (rates - mean) ** 2) / len(found) - alone * count)
    variance = max(variance, alone + between * float(sizes @ sizes) / len(found) ** 2)
    tail = 0.5 + confidence / 2
    # Korn and Graubard: fewer degrees of freedom widen the interval as they do in a t interval.
    variance *= float(t.ppf(tail, freedom) / t.ppf(tail, len(found) - 1)) ** 2
    # A cluster that outweighs the others tells little of how far clusters differ; of so few, not even that they do.
    known = even * count >= FEWEST_CLUSTERS
    further = max(0.0, variance - alone) / max(even, LEAST_EVEN) if known else max(alone, variance) / even - alone
    effective = mean * (1 - mean) / (alone + further)
    method = f"{METHOD} at {effective:.1f} effective answers of {count} clusters (Korn and Graubard)"
    # Where few clusters hold most of it, those that would hold more were not drawn.
    sides = growth(skewness(cluster_deviations(found, labels)), count)
    down, up = (mean * (1 - mean) / (alone + further * side) for side in sides)
    whole = _estimate(found, effective, count, scale, confidence, method)
    low, high = share_limits(mean, down, confidence)[0], share_limits(mean, up, confidence)[1]
    return replace(whole, low=scale * low, high=scale * high)


def _estimate(
    found: Array, effective: float, clusters: int | None, scale: float, confidence: float, method: str
) -> Estimate:
    mean = float(found.mean())
    low, high = share_limits(mean, effective, confidence)
    return Estimate(
        scale * mean, scale * low, scale * high, n=len(found), confidence=confidence, method=method, unit=_unit(scale),
        units=clusters, fewest=1 if clusters is None else FEWEST_CLUSTERS,
    )  # fmt: skip


ALIKE = 0.05
"""How much of the variance of an answer clusters have in common, where nothing is known: a twentieth."""


def expected_answers(sizes: Sequence[int]) -> float:
    """How many independent answers the interval of :func:`share` is expected to stand for, of clusters of ``sizes``.

    Answers of a cluster are taken to be a little alike (:data:`ALIKE`); few clusters look more so by chance.
    """
    from scipy.special import stdtrit

    each = np.asarray(sizes, dtype=np.float64)
    n, count, squares = float(each.sum()), len(each), float(each @ each)
    if count == n or count < 2:
        return n
    even = effective_number(each) / count
    alike = ALIKE + 0.4 * math.sqrt(2 * count) / n
    further = alike * (squares / n) / max(even, LEAST_EVEN)
    wider = float(stdtrit(max(1.0, even * count - 1), 0.975) / stdtrit(n - 1, 0.975)) ** 2
    return n / ((1 + further) * wider)


@checked
def share_limits(mean: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson's limits of a share ``mean`` of ``n`` answers, neither of which need be whole.

    Raises ``UsageError`` for a mean outside [0, 1] or an ``n`` that is not above 0.
    """
    if None in (mean, n) or not 0 <= mean <= 1 or not 0 < n < math.inf:
        raise UsageError(f"a share from 0 to 1 of more than 0 answers is needed, got {mean} of {n}")
    low, high = limits_of_shares(np.array([mean]), n, confidence)
    return float(low[0]), float(high[0])


def limits_of_shares(means: Array, n: float, confidence: float = 0.95) -> tuple[Array, Array]:
    """:func:`share_limits` of several shares of ``n`` answers each."""
    from scipy.special import betaincinv

    tail, k = (1 - confidence) / 2, means * n
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, betaincinv(k, n - k + 1, tail), 0.0)
        high = np.where(n - k > 0, betaincinv(k + 1, n - k, 1 - tail), 1.0)
    return np.minimum(low, means), np.maximum(high, means)


def share_p(mean: float, n: float, expected: float) -> float:
    """Two-sided p-value of "the share is ``expected``", twice the smaller binomial tail; neither number need be whole.

    At most alpha exactly where :func:`share_limits` with confidence 1 - alpha exclude ``expected``; 0 where one answer
    alone refutes an ``expected`` of 0 or 1.
    """
    from scipy.special import betainc

    k = mean * n
    above = float(betainc(k, n - k + 1, expected)) if k > 0 else 1.0
    below = 1 - float(betainc(k + 1, n - k, expected)) if n - k > 0 else 1.0
    return min(1.0, 2 * min(above, below))


def _unit(scale: float) -> str:
    return "%" if scale == 100 else "share"
