"""The difference of two shares that were measured over the same clusters: requests, templates, pairs of lines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers, cluster_numbers, finite_array
from lm_audit.stats.shares.clustered_share import share

METHOD = "difference of shares over {} clusters (MOVER from Clopper-Pearson's limits)"


@checked
def clustered_share_difference(
    values: ArrayLike,
    first: ArrayLike,
    clusters: Sequence[Hashable] | ArrayLike,
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
) -> Estimate:
    """The mean of the answers where ``first`` is true minus the mean of the others, with an interval over clusters.

    ``values`` (between 0 and 1), ``first`` (truth values) and ``clusters`` have shape (n,); a cluster may have answers
    of both sides. ``scale`` is 100 for percentage points. Each share's limits are those of
    :func:`lm_audit.stats.shares.clustered_share.share`; they are combined by the method of variance estimates recovery
    (Zou and Donner 2008; Newcombe 1998), with the correlation that the clusters show, so that the interval keeps a
    width where all answers agree. Fewer than 6 clusters on a side give no interval, a side without answers no value.
    Raises ``UsageError`` where lengths differ.
    """
    found, labels = finite_array(values, "values"), cluster_numbers(clusters)
    side: NDArray[np.bool_] = np.asarray(first, dtype=np.bool_)
    if len(side) != np.size(values) or len(labels) != np.size(values):
        raise UsageError(f"values has {np.size(values)} elements, first has {len(side)}, clusters has {len(labels)}")
    unit = "percentage points" if scale == 100 else "share"
    count = len(np.unique(labels))
    fields: dict[str, Any] = {
        "n": np.size(values),
        "method": METHOD.format(count),
        "confidence": confidence,
        "unit": unit,
    }
    if isinstance(found, str):
        return Estimate.not_estimable(found, **fields)
    if side.all() or not side.any():
        return Estimate.not_estimable("one of the two sides has no answers (0/0)", **fields)
    one, other = (share(found[chosen], labels[chosen], confidence=confidence) for chosen in (side, ~side))
    if one.value is None or other.value is None:
        return Estimate.not_estimable(one.note or other.note or "", **fields)
    difference = one.value - other.value
    units = min(len(np.unique(labels[chosen])) for chosen in (side, ~side))
    if one.low is None or other.low is None or units < FEWEST_CLUSTERS:
        note = f"{units} clusters give no interval, {FEWEST_CLUSTERS} do"
        return Estimate(scale * difference, note=note, units=units, fewest=FEWEST_CLUSTERS, **fields)
    assert one.high is not None and other.high is not None
    together = _correlation(found, side, labels)
    low = difference - _distance(one.value - one.low, other.high - other.value, together)
    high = difference + _distance(one.high - one.value, other.value - other.low, together)
    limits = (scale * max(low, -1.0), scale * min(high, 1.0))
    return Estimate(scale * difference, *limits, units=units, fewest=FEWEST_CLUSTERS, **fields)


def _distance(first: float, second: float, together: float) -> float:
    return float(np.sqrt(max(first**2 + second**2 - 2 * together * first * second, 0.0)))


def _correlation(values: Array, side: NDArray[np.bool_], labels: Integers) -> float:
    """How far the clusters move both shares together; drawn towards 0 where few clusters tell it."""
    sums = []
    for chosen in (side, ~side):
        deviations = np.where(chosen, values - values[chosen].mean(), 0.0)
        sums.append(np.bincount(labels, weights=deviations))
    spread = float(np.sqrt((sums[0] ** 2).sum() * (sums[1] ** 2).sum()))
    if spread <= 1e-12:
        return 0.0
    found = float((sums[0] * sums[1]).sum()) / spread
    count = int(((sums[0] != 0) | (sums[1] != 0)).sum())
    # A correlation that chance shows would narrow the interval; one that widens it is taken as it is.
    return found * max(0.0, 1 - 3 / max(count, 1)) if found > 0 else found
