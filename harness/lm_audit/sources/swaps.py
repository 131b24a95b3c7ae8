"""The exact test of "nothing changed": in each cluster the two runs may change places.

If neither run is better, a cluster's results of run A might as well have been those of run B. The statistic's change
is computed for all such exchanges (or many of them at random); for a mean this is the sign-flip test, for answers of 0
or 1 McNemar's. Nothing is assumed of the statistic, so its level holds at any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lm_audit.sources.spread import BATCH
from lm_audit.sources.units import Floats

ENUMERATED = 12
"""Up to so many clusters all 2 ** n exchanges are tried for a statistic that is not a mean."""

FIRST_DRAWS = 1999
"""Random exchanges tried first; only where few of them reach the observed change are more of use."""

FEW = 20


@dataclass(frozen=True)
class Tested:
    """A p-value and the smallest that the test could have given with these data."""

    p: float
    floor: float


def swap_test_of_mean(differences: Floats, *, resolution: float, seed: int) -> Tested:
    """Sums of differences of clusters, each with either sign."""
    from lm_audit.stats import sign_flip_test
    from lm_audit.stats.permutation import EXACT_LIMIT
    from lm_audit.stats.proportions import sign_test_p

    moved = differences[differences != 0]
    if not len(moved):
        return Tested(1.0, 1.0)
    sizes = np.abs(moved)
    if np.ptp(sizes) <= 1e-12 * sizes.max():
        gained = int((moved > 0).sum())
        return Tested(sign_test_p(gained, len(moved) - gained), 2.0 ** (1 - len(moved)))
    if 2 ** len(moved) <= EXACT_LIMIT:
        return Tested(float(sign_flip_test(moved).value or 1.0), 2.0 ** (1 - len(moved)))
    draws = draws_for(resolution)
    found = sign_flip_test(moved, n_resamples=FIRST_DRAWS, seed=seed)
    if (found.value or 1.0) <= FEW / FIRST_DRAWS and draws > FIRST_DRAWS:
        found = sign_flip_test(moved, n_resamples=draws, seed=seed)
    return Tested(float(found.value or 1.0), 1 / (1 + draws))


def swap_test(
    change: Callable[[Floats], Floats], moved: int, *, width: int, resolution: float, slow: bool = False, seed: int
) -> Tested:
    """``change`` gives the statistic's change for exchanges (B, moved), 1 where a cluster's runs change places.

    ``width`` is how many numbers ``change`` holds for each exchange; a ``slow`` one is tried on fewer of them.
    """
    if not moved:
        return Tested(1.0, 1.0)
    if moved <= ENUMERATED:
        # Exchanging all clusters turns the change's sign, so half of the patterns say it all.
        patterns = (np.arange(2 ** (moved - 1))[:, None] >> np.arange(moved) & 1).astype(np.float64)
        sizes = _sizes(change, patterns, moved, width)
        # A median moves in few steps: the largest of all changes tells how small p could have become.
        floor = float((sizes >= sizes.max() * (1 - 1e-9)).mean())
        return Tested(_reached(change, sizes, moved) / len(patterns), floor)
    return drawn_test(
        change, lambda rng, size: rng.integers(0, 2, (size, moved)).astype(np.float64),
        moved, width=width, resolution=resolution, slow=slow, seed=seed,
    )  # fmt: skip


def drawn_test(
    change: Callable[[Floats], Floats],
    draw: Callable[[np.random.Generator, int], Floats],
    count: int,
    *,
    width: int,
    resolution: float,
    slow: bool,
    seed: int,
) -> Tested:
    """The same by ``draw``-ing rearrangements of ``count`` clusters: p = (1 + k) / (1 + R)."""
    rng, wanted = np.random.default_rng(seed), draws_for(resolution)
    first, wanted = (FIRST_DRAWS // 4, min(wanted, FIRST_DRAWS)) if slow else (FIRST_DRAWS, wanted)
    reached, done = _reached(change, _sizes(change, draw(rng, first), count, width), count), first
    if reached <= FEW and wanted > first:
        more = _sizes(change, draw(rng, wanted - first), count, width)
        reached, done = reached + _reached(change, more, count), wanted
    return Tested((1 + reached) / (1 + done), 1 / (1 + wanted))


def draws_for(resolution: float) -> int:
    """Random exchanges by which a p-value as small as ``resolution`` is told apart: ten times its inverse."""
    return int(min(99_999, max(FIRST_DRAWS, np.ceil(10 / resolution))))


def _sizes(change: Callable[[Floats], Floats], patterns: Floats, count: int, width: int) -> Floats:
    """The size of the change under each rearrangement; infinite where there is none (a group left empty)."""
    step = max(1, BATCH // max(width, count))
    found = [change(patterns[start : start + step]) for start in range(0, len(patterns), step)]
    values = np.concatenate(found)
    # What has no value speaks for no change.
    sizes: Floats = np.where(np.isfinite(values), np.abs(values), np.inf)
    return sizes


def _reached(change: Callable[[Floats], Floats], sizes: Floats, count: int) -> int:
    """How many rearrangements change the statistic as much as the runs do."""
    observed = abs(float(change(np.zeros((1, count)))[0]))
    return int((sizes >= observed - 1e-9 * max(1e-9, observed)).sum())
