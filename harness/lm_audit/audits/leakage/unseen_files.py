"""Means over files: how much wider than files at hand say the interval must be, for files that were not drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm_audit.stats import Estimate
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.means.bounded import bounded_limits

Floats = NDArray[np.float64]

Range = tuple[float, float]
"""Between what a mean may lie; infinite where nothing is known."""


def no_nearer(found: Estimate, values: Floats, files: NDArray[np.int64], unseen: Range, *, seed: int) -> Estimate:
    """``found``, the t over 6 files or more, with limits no nearer than files that were not drawn allow.

    ``values`` (questions,), ``files`` (questions,) numbers of their files. ``unseen``: between what the mean of a file
    that was not drawn may lie; where an end is infinite, no further than the furthest file at hand. Memory is held by
    files: of 8 files of which a tenth are memorised none is in 43 of 100 samples, and no spread at hand tells of them.
    The limits are Gaffke's of the files' means, files weighted by their questions. Coverage:
    ``benchmarks/coverage_leakage.py --only "over files"``.
    """
    sizes = np.bincount(files).astype(np.float64)
    if len(sizes) < FEWEST_CLUSTERS or not any(map(math.isfinite, unseen)):
        return found
    means: Floats = np.bincount(files, weights=values) / sizes
    ends = min(unseen[0], float(means.min())), max(unseen[1], float(means.max()))
    low = ends[0] if math.isfinite(ends[0]) else float(means.min())
    high = ends[1] if math.isfinite(ends[1]) else float(means.max())
    if high <= low:
        return found
    confidence = 0.95 if found.confidence is None else found.confidence
    if found.low is not None:
        # A file that was not drawn lies on one side of those at hand, so that one of the two limits fails at most.
        confidence = 2 * confidence - 1
    bottom, top = bounded_limits(
        means, low, high, confidence=confidence, n_resamples=9999, seed=seed, parts=sizes / sizes.sum()
    )
    lows, highs = ([limit, *(() if end is None else (end,))] for limit, end in ((bottom, found.low), (top, found.high)))
    method = f"{found.method}, Gaffke's limits of {len(sizes)} files where wider"
    return replace(
        found, low=min(lows), high=max(highs), method=method, note=None, units=len(sizes), fewest=FEWEST_CLUSTERS
    )
