"""Shares and statistics of benchmark items, with intervals over the clusters that the items come from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.stats import Estimate, bootstrap_clustered, share, share_limits

N_RESAMPLES = 2000
"""Bootstrap resamples: enough for two digits of a limit, and seconds for a whole public set."""


def preference_share(pairs: ArrayLike) -> NDArray[np.float64]:
    """100 where the first score of a pair is larger, 0 where the second is, 50 for a tie; ``pairs`` is n x 2."""
    first, second = np.asarray(pairs, dtype=np.float64).T
    return np.asarray(100 * ((first > second) + 0.5 * (first == second)), dtype=np.float64)


def clustered_mean(
    values: ArrayLike, clusters: Sequence[Hashable] | ArrayLike, *, confidence: float, seed: int, **fields: Any
) -> Estimate:
    """The mean with an interval over clusters; ``fields`` (unit, better, chance) go into the estimate.

    A share in percent has the interval of :func:`lm_audit.stats.share`, anything else a clustered bootstrap.
    """
    if fields.get("unit") == "%":
        estimate = share(np.asarray(values, dtype=np.float64) / 100, clusters, scale=100, confidence=confidence)
    else:
        estimate = bootstrap_clustered(values, clusters, confidence=confidence, n_resamples=N_RESAMPLES, seed=seed)
    return replace(estimate, **fields)


SPANS: Mapping[str | None, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "%": (0.0, 100.0),
    "-1..1": (-1.0, 1.0),
    "percentage points": (-100.0, 100.0),
}
"""The range of a score by its unit."""


def _without_spread(estimate: Estimate, span: tuple[float, float], confidence: float) -> Estimate:
    """Where all resamples agree: the limits of a share of that many clusters, since 5 of 5 is no proof of 100%."""
    assert estimate.value is not None
    low, high = span
    clusters = estimate.units or 0
    limits = share_limits((estimate.value - low) / (high - low), clusters, confidence)
    return replace(
        estimate,
        low=low + (high - low) * limits[0],
        high=low + (high - low) * limits[1],
        method=f"Clopper-Pearson over {clusters} clusters that agree",
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
    # A difference of shares is given as a share too; what chance gives tells them apart.
    span = (-1.0, 1.0) if fields.get("unit") == "share" and fields.get("chance") == 0 else SPANS.get(fields.get("unit"))
    if estimate.value is not None and estimate.low == estimate.high and span is not None and estimate.units:
        estimate = _without_spread(estimate, span, confidence)
    return replace(estimate, **fields)
