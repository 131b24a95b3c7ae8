"""How far the limits of a share lie from it, with clusters and without, and those of the difference of two shares.

Each end by itself. Limits by the F distribution, variances from a matrix of what each answer does to each cluster:
formulas other than those of the reported intervals, for the design that these say they have.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from lm_audit.sources.units import Floats, Integers, Mask

Ends = tuple[float, float]
"""Distances from a value down to its lower and up to its upper limit."""

FEW = 6
"""Clusters in effect below which nothing tells that clusters differ."""

LEAST_EVEN = 0.7
"""Where clusters are of unequal sizes, what they add counts by no more than one over this."""

LONGER_TAIL = 15.0
"""Over n, by how much of itself an interval grows towards the longer tail of few values for each unit of skewness: what
the intervals say that they do, and here is told by another skewness of other deviations."""


def grown(values: Floats, spared: float = 0.0) -> Ends:
    """The factors of the parts below and above the mean: what lies far out on the longer side was not drawn."""
    from scipy.stats import skew

    if not np.ptp(values):
        return 1.0, 1.0
    counted, n = float(skew(values)), len(values)
    chance = spared * math.sqrt(6 / n)
    return 1 + LONGER_TAIL / n * max(0.0, -counted - chance), 1 + LONGER_TAIL / n * max(0.0, counted - chance)


def cluster_deviations(values: Floats, codes: Integers) -> Floats:
    """By how much each cluster moves the mean, too small by its own share of it and made up for that."""
    sizes = np.bincount(codes)
    away: Floats = np.bincount(codes, weights=values - values.mean()).astype(np.float64)
    return np.asarray(away / np.sqrt(1 - sizes / len(values))) if len(sizes) > 1 else away


def share_ends(values: Floats, codes: Integers | None, tail: float) -> Ends:
    """Of answers between 0 and 1, in clusters 0, 1, ... where ``codes`` has them."""
    mean, n = float(values.mean()), len(values)
    if codes is None:
        return _ends(mean, n, n, tail)
    # Of some of the units, so that clusters may be without any.
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes).astype(np.float64)
    if len(sizes) == n and n >= FEW:
        return _ends(mean, n, n, tail)
    # Kish's number: of so many clusters of one size.
    even = 1 / float(((sizes / n) ** 2).sum())
    moved = cluster_deviations(values, codes)
    variance = float((moved**2).sum()) / n**2
    if len(sizes) < 2 or variance <= 1e-12 or not 0 < mean < 1:
        return _ends(mean, even, even, tail)
    alone = mean * (1 - mean) / n
    # What clusters of all sizes would add if they differed as those at hand do beyond their single answers.
    rates = np.bincount(codes, weights=values) / sizes
    apart = max(0.0, float((sizes * (rates - mean) ** 2).sum()) / n - len(sizes) * alone)
    variance = max(variance, alone + apart / even)
    variance *= (_student(_freedom(codes, sizes), tail) / _student(n - 1, tail)) ** 2
    uneven = even / len(sizes)
    further = (
        max(0.0, variance - alone) / max(uneven, LEAST_EVEN) if even >= FEW else max(alone, variance) / uneven - alone
    )
    below, above = (mean * (1 - mean) / (alone + further * factor) for factor in grown(moved))
    return _ends(mean, below, above, tail)


def difference_ends(values: Floats, first: Mask, codes: Integers, tail: float) -> Ends:
    """Of the share where ``first`` is true minus the other, clusters having answers of either or of both."""
    sides = [(values[side], np.unique(codes[side], return_inverse=True)[1]) for side in (first, ~first)]
    (down, up), (other_down, other_up) = (share_ends(answers, own, tail) for answers, own in sides)
    together = _together(values, first, codes)
    return _apart(down, other_up, together), _apart(up, other_down, together)


def widest_ends(values: Floats, groups: Integers, codes: Integers, tail: float) -> Ends:
    """Of the largest minus the smallest share of several groups, limits that hold for all pairs at once."""
    pairs = list(combinations(range(int(groups.max()) + 1), 2))
    highest, lowest, widest = 0.0, 0.0, 0.0
    for pair in pairs:
        here = np.isin(groups, pair)
        side = groups[here] == pair[0]
        down, up = difference_ends(values[here], side, codes[here], tail / len(pairs))
        found = float(values[here][side].mean() - values[here][~side].mean())
        low, high = max(found - down, -1.0), min(found + up, 1.0)
        widest, highest = max(widest, abs(found)), max(highest, high, -low)
        lowest = max(lowest, low, -high)
    return widest - min(widest, lowest), max(highest, widest) - widest


def _together(values: Floats, first: Mask, codes: Integers) -> float:
    """The correlation over clusters of what they add to both shares, less where few clusters tell it."""
    count = int(codes.max()) + 1
    moved = np.zeros((2, count))
    for number, side in enumerate((first, ~first)):
        np.add.at(moved[number], codes[side], values[side] - values[side].mean())
    lengths = np.linalg.norm(moved, axis=1)
    if lengths.prod() <= 1e-12:
        return 0.0
    found = float(moved[0] @ moved[1] / lengths.prod())
    moving = int(moved.any(axis=0).sum())
    return found * max(0.0, 1 - 3 / max(1, moving)) if found > 0 else found


def _apart(one: float, other: float, together: float) -> float:
    """The third side of the triangle of two distances whose angle has the cosine ``together``."""
    return math.sqrt(max(0.0, (one - other) ** 2 + 2 * (1 - together) * one * other))


def _ends(mean: float, below: float, above: float, tail: float) -> Ends:
    """Clopper and Pearson's limits of a share of so many answers, which need not be whole."""
    hits, misses = mean * below, (1 - mean) * above
    low = high = 0.0
    if hits > 0:
        low = hits / (hits + (below - hits + 1) * _f(2 * (below - hits + 1), 2 * hits, 1 - tail))
    if misses > 0:
        high = misses / (misses + (above - misses + 1) * _f(2 * (above - misses + 1), 2 * misses, 1 - tail))
    return max(0.0, mean - low), max(0.0, 1 - mean - high)


def _f(first: float, second: float, share: float) -> float:
    from scipy.special import fdtri

    return float(fdtri(first, second, share))


def _freedom(codes: Integers, sizes: Floats) -> float:
    """Degrees of freedom of a sum of squares of what clusters add, where answers are independent: from its matrix."""
    n = len(codes)
    member = (codes[None, :] == np.arange(len(sizes))[:, None]).astype(np.float64)
    moves = (member - sizes[:, None] / n) / np.sqrt(1 - sizes / n)[:, None]
    matrix = moves @ moves.T
    return float(np.trace(matrix) ** 2 / (matrix**2).sum())


def _student(df: float, tail: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, 1 - tail))
