"""Shares that a few files make: where the interval of a mean over files must be wider than files at hand say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm_audit.stats import Estimate, share
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.effective_number import effective_number

Floats = NDArray[np.float64]

ALIKE = 0.8
"""Share of its square that a mean's square has in the mean square of files: above, files are near enough alike."""

SPREAD = 0.7
"""Effective number of files that hold the hits, as a share of the effective number of all: above, all hold some."""


def held_by_few(values: Floats, files: NDArray[np.int64]) -> bool:
    """Whether few files hold most of what hits there are, or most of the misses.

    ``values`` (questions,) lie in 0 to 1, ``files`` (questions,) are numbers of their files. So they do where files
    differ by more than chance within them tells; where the hits are worth fewer than 6 files and fewer than files of
    these sizes would hold if all were alike; and where the files' sizes alone are worth fewer than 6 files. A t over
    files is then too narrow, since the file with all hits may be one of those that were not drawn.
    """
    sizes = np.bincount(files).astype(np.float64)
    worth = effective_number(sizes)
    sums: Floats = np.bincount(files, weights=values).astype(np.float64)
    carrying = min(effective_number(sums), effective_number(sizes - sums))
    mean, within = float(values.mean()), len(values) - len(sizes)
    between = float((sizes * (sums / sizes - mean) ** 2).sum()) / len(values) * len(sizes) / (len(sizes) - 1)
    if within:
        between -= float(((values - (sums / sizes)[files]) ** 2).sum()) / within * len(sizes) / len(values)
    rarer = min(mean, 1 - mean) ** 2
    differ = rarer < ALIKE * (rarer + max(0.0, between))
    return worth < FEWEST_CLUSTERS or differ or carrying < min(SPREAD * worth, FEWEST_CLUSTERS)


def wide_enough(found: Estimate, values: Floats, files: NDArray[np.int64], limits: tuple[float, float]) -> Estimate:
    """``found``, the t over 6 files or more, with limits no nearer than the exact ones where few files hold the hits.

    ``values`` (questions,) lie within ``limits``. The exact ones are those of a share of files
    (:func:`lm_audit.stats.share`). Coverage: ``benchmarks/coverage_leakage.py --only "hits over files"``.
    """
    low, high = limits
    parts = (values - low) / (high - low)
    if found.low is not None and not held_by_few(parts, files):
        return found
    exact = share(parts, files)
    if exact.low is None or exact.high is None:
        return found
    ends = low + (high - low) * exact.low, low + (high - low) * exact.high
    bounds = (end for end in (found.low, found.high) if end is not None)
    known = [*ends, *bounds]
    method = f"{found.method}, {exact.method} where wider"
    return replace(found, low=min(known), high=max(known), method=method, note=None, fewest=FEWEST_CLUSTERS)
