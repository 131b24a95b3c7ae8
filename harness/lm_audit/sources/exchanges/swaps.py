"""The exact test of "nothing changed": in each cluster the two runs may change places.

If neither run is better, a cluster's results of run A might as well have been those of run B. The statistic's change
is computed for all such exchanges (or many of them at random); for a mean this is the sign-flip test, for answers of 0
or 1 McNemar's. Nothing is assumed of the statistic, so its level holds at any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lm_audit.sources.spread import BATCH
from lm_audit.sources.units import Floats, Mask

ENUMERATED = 12
"""Up to so many clusters all 2 ** n exchanges are tried for a statistic that is not a mean."""

FIRST_DRAWS = 1999
"""Random exchanges tried first; only where few of them reach the observed change are more of use."""

FEW = 20

SLOW_DRAWS = 9_999
"""Random exchanges at most of a function that takes one table of rows at a time."""


@dataclass(frozen=True)
class Tested:
    """A p-value and the smallest that the test could have given with these data."""

    p: float
    floor: float


@dataclass(frozen=True)
class Side:
    """A group that a statistic compares: which of the exchanged clusters are in it, and how many clusters it has."""

    exchanged: Mask
    count: int


def swap_test_of_mean(differences: Floats, *, resolution: float, seed: int) -> Tested:
    """Sums of differences of clusters, each with either sign."""
    from lm_audit.stats import sign_flip_test
    from lm_audit.stats.shares.proportions import sign_test_p
    from lm_audit.stats.testing.permutation import EXACT_LIMIT

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
    change: Callable[[Floats], Floats],
    moved: int,
    *,
    width: int,
    resolution: float,
    sides: Sequence[Side] = (),
    slow: bool = False,
    seed: int,
) -> Tested:
    """``change`` gives the statistic's change for exchanges (B, moved), 1 where a cluster's runs change places.

    ``width`` is how many numbers ``change`` holds for each exchange; a ``slow`` one is tried on fewer of them. With
    ``sides`` it is the change over its own standard error that is compared (:func:`_errors`).
    """
    if not moved:
        return Tested(1.0, 1.0)
    if moved <= ENUMERATED:
        # Exchanging all clusters turns the change's sign, so half of the patterns say it all; the first is as observed.
        patterns = (np.arange(2 ** (moved - 1))[:, None] >> np.arange(moved) & 1).astype(np.float64)
        sizes = _sizes(_changes(change, patterns, width), patterns, sides)
        # A median moves in few steps: the largest of all changes tells how small p could have become.
        floor = float((sizes >= sizes.max() * (1 - _slack(sides))).mean())
        return Tested(_reached(sizes, sides) / len(patterns), floor)
    return drawn_test(
        change, lambda rng, size: rng.integers(0, 2, (size, moved)).astype(np.float64),
        moved, least=2.0 ** (1 - moved), width=width, resolution=resolution, sides=sides, slow=slow, seed=seed,
    )  # fmt: skip


def drawn_test(
    change: Callable[[Floats], Floats],
    draw: Callable[[np.random.Generator, int], Floats],
    count: int,
    *,
    least: float,
    width: int,
    resolution: float,
    slow: bool,
    seed: int,
    sides: Sequence[Side] = (),
) -> Tested:
    """The same by ``draw``-ing rearrangements of ``count`` clusters: p = (1 + k) / (1 + R).

    ``least`` is the share of all rearrangements that change the statistic as much as the runs do, whatever the data:
    below it p falls by luck alone.
    """
    rng, wanted = np.random.default_rng(seed), draws_for(resolution)
    first, wanted = (FIRST_DRAWS // 4, min(wanted, SLOW_DRAWS)) if slow else (FIRST_DRAWS, wanted)
    patterns = np.vstack([np.zeros((1, count)), draw(rng, first)])
    changes = _changes(change, patterns, max(width, count))
    reached = _reached(_sizes(changes, patterns, sides), sides)
    if reached <= FEW + 1 and wanted > first:
        more = draw(rng, wanted - first)
        changes = np.concatenate([changes, _changes(change, more, max(width, count))])
        reached = _reached(_sizes(changes, np.vstack([patterns, more]), sides), sides)
    return Tested(reached / len(changes), max(least, 1 / (1 + wanted)))


def draws_for(resolution: float) -> int:
    """Random exchanges by which a p-value as small as ``resolution`` is told apart: ten times its inverse."""
    return int(min(99_999, max(FIRST_DRAWS, np.ceil(10 / resolution))))


def _changes(change: Callable[[Floats], Floats], patterns: Floats, width: int) -> Floats:
    """The change under each rearrangement, NaN where there is none."""
    step = max(1, BATCH // max(width, patterns.shape[1]))
    return np.concatenate([change(patterns[start : start + step]) for start in range(0, len(patterns), step)])


def _sizes(changes: Floats, patterns: Floats, sides: Sequence[Side]) -> Floats:
    """How large each change is; infinite where it has no value (a group left empty), which speaks for no change."""
    known = np.isfinite(changes)
    sizes: Floats = np.where(known, np.abs(changes), np.inf)
    if not sides:
        return sizes
    errors = _errors(np.where(known, changes, 0.0), patterns, sides)
    found: Floats = sizes if errors is None else sizes / errors
    return found


def _errors(changes: Floats, patterns: Floats, sides: Sequence[Side]) -> Floats | None:
    """The standard error of the change under each rearrangement, from the spread of the clusters' parts on each side.

    A cluster's part is the mean of the change times +1 or -1 as its runs stand (its first Walsh coefficient), which
    turns its sign when the cluster is exchanged and is otherwise the same for all rearrangements, so that the test
    stays exact. Without it, an effect on one side alone widens the distribution that it is held against. ``None``
    where no cluster has a part of its own.
    """
    parts = changes.mean() - 2 * (changes @ patterns) / len(changes)
    squares = parts**2
    if squares.sum() <= (1e-9 * np.abs(changes).max()) ** 2:
        return None
    variance = np.zeros(len(changes))
    for side in sides:
        own = squares[side.exchanged].sum()
        total = parts[side.exchanged].sum() - 2 * (patterns[:, side.exchanged] @ parts[side.exchanged])
        variance += side.count / (side.count - 1) * (own - total**2 / side.count)
    errors: Floats = np.sqrt(np.maximum(variance, 1e-12 * squares.sum()))
    return errors


def _slack(sides: Sequence[Side]) -> float:
    """What rounding may set apart."""
    return 1e-6 if sides else 1e-9


def _reached(sizes: Floats, sides: Sequence[Side]) -> int:
    """How many rearrangements change the statistic as much as the runs do, themselves (the first) among them."""
    # What has no value as it is cannot be told from any other.
    least = sizes[0] - _slack(sides) * max(1e-9, sizes[0]) if np.isfinite(sizes[0]) else -np.inf
    return int((sizes >= least).sum())
