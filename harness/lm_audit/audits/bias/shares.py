"""Shares and statistics of benchmark items, with intervals over the clusters that the items come from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.stats import Estimate, bootstrap_clustered

N_RESAMPLES = 2000
"""Bootstrap resamples: enough for two digits of a limit, and seconds for a whole public set."""


def preference_share(pairs: ArrayLike) -> NDArray[np.float64]:
    """100 where the first score of a pair is larger, 0 where the second is, 50 for a tie; ``pairs`` is n x 2."""
    first, second = np.asarray(pairs, dtype=np.float64).T
    return np.asarray(100 * ((first > second) + 0.5 * (first == second)), dtype=np.float64)


def clustered_mean(
    values: ArrayLike, clusters: Sequence[Hashable] | ArrayLike, *, confidence: float, seed: int, **fields: Any
) -> Estimate:
    """The mean with its clustered bootstrap interval; ``fields`` (unit, better, chance) go into the estimate.

    A share in percent on which all clusters agree has no spread to resample: its interval is Wilson's, with the
    clusters as the independent observations, since 5 of 5 is no proof of 100%.
    """
    estimate = bootstrap_clustered(values, clusters, confidence=confidence, n_resamples=N_RESAMPLES, seed=seed)
    if fields.get("unit") == "%" and estimate.value is not None and estimate.low == estimate.high:
        estimate = _without_spread(estimate, len(set(clusters)), confidence)  # type: ignore[arg-type]
    return replace(estimate, **fields)


def _without_spread(estimate: Estimate, n_clusters: int, confidence: float) -> Estimate:
    from statsmodels.stats.proportion import proportion_confint

    assert estimate.value is not None
    # Not lm_audit.stats.wilson, which counts whole successes: a cluster may agree on one half.
    count = estimate.value / 100 * n_clusters
    low, high = proportion_confint(count, n_clusters, alpha=1 - confidence, method="wilson")
    return replace(
        estimate,
        low=100 * float(low),
        high=100 * float(high),
        method=f"Wilson over {n_clusters} clusters",
        note="all clusters agree: nothing to resample",
    )


def clustered_statistic(
    statistic: Callable[[NDArray[np.int64]], float | None],
    clusters: Sequence[Hashable] | ArrayLike,
    *,
    confidence: float,
    seed: int,
    **fields: Any,
) -> Estimate:
    """A statistic of item numbers 0..n-1 with its interval, clusters resampled.

    ``statistic`` takes the numbers of the items in a resample (with repeats); where it gives ``None`` for the items as
    they are, the estimate has no value.
    """
    n = len(list(clusters))  # type: ignore[arg-type]
    everything = np.arange(n)
    if n == 0 or statistic(everything) is None:
        return Estimate.not_estimable("no item counts towards this score (0/0)", n=n, **fields)
    estimate = bootstrap_clustered(
        everything,
        clusters,
        lambda numbers: statistic(np.asarray(numbers, dtype=np.int64)),
        confidence=confidence,
        n_resamples=N_RESAMPLES,
        seed=seed,
    )
    return replace(estimate, **fields)
