"""The interval of a median from order statistics, which needs no resamples and covers at any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import finite_array


@checked
def median_interval(values: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """The median of independent values, shape (n,), between the order statistics whose ranks a fair coin allows.

    It covers at least what it says, whatever the values' distribution. Fewer than 8 values give no interval.
    """
    from scipy.stats import binom

    array, method = finite_array(values), "median, order statistics"
    if isinstance(array, str):
        return Estimate.not_estimable(array, n=int(np.size(values)), method=method, confidence=confidence)
    n, value = len(array), float(np.median(array))
    if n < FEWEST:
        note = f"{n} values give no interval, {FEWEST} do"
        return Estimate(value, n=n, confidence=confidence, method=method, note=note)
    below = int(binom.ppf((1 - confidence) / 2, n, 0.5))
    ordered = np.sort(array)
    low, high = float(ordered[max(below - 1, 0)]), float(ordered[min(n - below, n - 1)])
    if low == high:
        return Estimate(value, n=n, confidence=confidence, method=method, note="the values do not differ: no interval")
    return Estimate(value, low, high, n=n, confidence=confidence, method=method)
