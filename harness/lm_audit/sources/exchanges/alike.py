"""Whether all groups changed alike, for the largest minus the smallest of their means.

Means of groups that are alike lie the further apart the more noise a run has: where nothing but the noise grew (all
groups refuse half of the time now, and a twentieth before), the largest difference between them grew too. It changed
only where some group changed otherwise than the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lm_audit.sources.clusters import Clustering
from lm_audit.sources.exchanges.swaps import FEW, FIRST_DRAWS, Tested, drawn_test, draws_for, swap_test_of_mean
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import Floats, Integers, Units
from lm_audit.stats.inputs import cluster_numbers


def changed_alike(
    source: MetricSource, a: Units, b: Units, found: Sequence[Clustering], *, resolution: float, seed: int
) -> Tested | None:
    """The test that the groups of ``source`` changed alike from ``a`` to ``b``, the same units in both.

    Of one clustering exact: of two groups that share clusters each cluster's part of the difference has either sign, of
    more the changes of a cluster change groups among those that it holds, or clusters that lie in one group each change
    theirs. Of two crossed ones by the covariance of the groups' means
    (:func:`~lm_audit.stats.means.disparity.groups_apart`); ``None`` where too few rows or columns are whole.
    """
    groups = _groups(source, a)
    changes: Floats = b.values - a.values
    if len(found) == 1:
        codes, many = found[0].codes, int(groups.max()) + 1
        shared = len(np.unique(codes * many + groups)) > len(np.unique(codes))
        test = _two_turned if many == 2 and shared else _dealt
        return test(changes, groups, codes, resolution=resolution, seed=seed)
    from lm_audit.stats.means.disparity import groups_apart

    # As with exchanges: only where few of the first draws lie as far out are more of use.
    p: float | None = None
    wanted = draws_for(resolution)
    for draws in dict.fromkeys((FIRST_DRAWS, wanted)):
        p = groups_apart(changes, groups, found[0].codes, found[1].codes, seed=seed, draws=draws)
        if p is None or p * (1 + draws) > FEW + 1:
            break
    return None if p is None else Tested(p, 1 / (1 + wanted))


def _groups(source: MetricSource, units: Units) -> Integers:
    return cluster_numbers([str(group) for group in units.column(source.options["group"])])


def _two_turned(changes: Floats, groups: Integers, codes: Integers, *, resolution: float, seed: int) -> Tested:
    """What each cluster adds to the difference of two groups' mean changes, with either sign.

    Where nothing changed, whatever the groups' shares and numbers of answers. Cells that change groups must have one
    law: of 3 % and 40 % refused with 1 to 12 answers a request, of which group and request have their own number, that
    rejected in 5.7 % of 20,000.
    """
    sizes = np.bincount(groups)
    weights = np.where(groups == 0, 1.0 / sizes[0], -1.0 / sizes[1])
    parts: Floats = np.bincount(codes, weights=changes * weights).astype(np.float64)
    # Parts that rounding alone sets apart from 0 did not change.
    parts[np.abs(parts) <= 1e-12 * np.abs(changes).max() / sizes.min()] = 0.0
    tested = swap_test_of_mean(parts, resolution=resolution, seed=seed)
    # A request in which both groups changed alike has no part to turn, and yet it might have told.
    moved = len(np.unique(codes[changes != 0]))
    return Tested(tested.p, min(tested.floor, 2.0 ** (1 - max(1, moved))))


def _dealt(changes: Floats, groups: Integers, codes: Integers, *, resolution: float, seed: int) -> Tested:
    """Cells of a cluster and a group dealt out anew: within their cluster, or where none holds two, among all."""
    many = int(groups.max()) + 1
    places, cells = np.unique(codes * many + groups, return_inverse=True)
    sums, counts = np.bincount(cells, weights=changes), np.bincount(cells).astype(np.float64)
    own, block = places % many, places // many
    if len(np.unique(block)) == len(block):
        block = np.zeros_like(block)
    member = (own[:, None] == np.arange(many)).astype(np.float64)
    blocks = np.broadcast_to(block, (1, len(places)))

    def spread(draws: Floats) -> Floats:
        """The range of the groups' mean changes for draws (B, 1), each dealt out anew; at 0 as they are."""
        # Dealt out here, a part of all draws at a time: what is drawn of a large table would fill the memory.
        rng = np.random.default_rng([seed, *draws[:1].view(np.uint64).ravel().tolist()])
        # Places are in the order of their blocks, so that sorting by block and at random keeps each in its own.
        keys = rng.random((len(draws), len(places)))
        chosen = np.lexsort((keys, np.broadcast_to(blocks, keys.shape)), axis=1)
        chosen = np.where(draws > 0, chosen, np.arange(len(places)))
        apart: Floats = np.ptp((sums[chosen] @ member) / (counts[chosen] @ member), axis=1)
        return apart

    return drawn_test(
        spread,
        lambda rng, size: 1.0 - rng.random((size, 1)),
        1,
        least=_least(block, own),
        width=len(places),
        resolution=resolution,
        slow=False,
        seed=seed,
    )


def _least(block: Integers, own: Integers) -> float:
    """The share of ways to deal out the cells that leave the groups as they are, but for their names."""
    blocks, sizes = np.unique(block, return_counts=True)
    ways = sum(math.lgamma(size + 1) for size in sizes)
    cells = np.unique(own, return_counts=True)[1]
    if len(blocks) > 1:
        return min(1.0, math.exp(math.lgamma(len(cells) + 1) - ways))
    alike = np.unique(cells, return_counts=True)[1]
    return min(1.0, math.exp(sum(math.lgamma(count + 1) for count in [*cells, *alike]) - ways))


def moved_alike(
    source: MetricSource, runs: Sequence[Units], found: Sequence[Sequence[Clustering]], *, resolution: float, seed: int
) -> Tested | None:
    """The same test where the two ``runs`` hold other units; ``None`` where too few clusters or groups tell.

    The groups' means err by what each run's own clusters tell of them, with the tails of a t: of crossed factors by
    what rows and columns do together.
    """
    rng, draws = np.random.default_rng(seed), draws_for(resolution)
    means: list[Floats] = []
    errors: list[Floats] = []
    fewest = math.inf
    names = sorted(
        set.intersection(*({str(group) for group in units.column(source.options["group"])} for units in runs))
    )
    if len(names) < 2:
        return None
    for units, clusterings in zip(runs, found, strict=True):
        own = np.array([str(group) for group in units.column(source.options["group"])])
        member = (own == np.array(names)[:, None]).astype(np.float64)
        counts = member.sum(axis=1)
        means.append(member @ units.values / counts)
        parts = member * (units.values - means[-1][:, None]) / counts[:, None]
        error = np.zeros((draws, len(names)))
        for clustering in clusterings[:2]:
            here = np.array([np.bincount(clustering.codes, weights=part, minlength=clustering.count) for part in parts])
            there = np.array([len(np.unique(clustering.codes[row > 0])) for row in member])
            fewest = min(fewest, int(there.min()))
            if fewest < 2:
                return None
            error += rng.standard_normal((draws, clustering.count)) @ (here.T * np.sqrt(there / (there - 1)))
        errors.append(error)
    tails = np.sqrt((fewest - 1) / rng.chisquare(fewest - 1, draws))[:, None]
    null = np.ptp((errors[1] - errors[0]) * tails, axis=1)
    observed = float(np.ptp(means[1] - means[0]))
    least = 1 / (1 + draws)
    return Tested(least * (1 + int((null >= observed * (1 - 1e-9)).sum())), least)
