"""Multiplicity where tests come in families: none of them pays for another family's size."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked


@checked
def weighted_holm(p: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values with weights that sum to at most 1, in the order given; they bound the chance of any
    false rejection.

    Source: Holm 1979, section 4. Equal weights of 1 / n give the ordinary ones.
    """
    raw, share = np.asarray(p, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if raw.shape != share.shape or not ((raw >= 0) & (raw <= 1)).all() or not ((share > 0) & (share < np.inf)).all():
        raise UsageError("p-values from 0 to 1 and as many finite weights above 0 are needed")
    order = np.argsort(raw / share, kind="stable")
    # What is rejected hands its weight on to the rest.
    left = np.cumsum(share[order][::-1])[::-1]
    stepped = np.maximum.accumulate(raw[order] / share[order] * left)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


@checked
def family_weights(paths: Sequence[tuple[Hashable, ...]]) -> list[float]:
    """Weights of tests that sum to 1: shared equally among the families at each level of ``paths``.

    ``("leakage", "case 1")`` and ``("leakage", "case 2")`` get a half each of what the audit ``"leakage"`` gets.
    """
    weights = []
    for path in paths:
        weight = 1.0
        for level in range(len(path)):
            weight /= len({other[level] for other in paths if other[:level] == path[:level]})
        weights.append(weight / paths.count(path))
    return weights


@checked
def able(paths: Sequence[tuple[Hashable, ...]], floors: Sequence[float], level: float = 0.05) -> list[int]:
    """The tests that can reach ``level`` at all in the family that they make up together, by their numbers.

    ``floors`` are the smallest p-values that each could give, which must not depend on how it came out. A test that
    cannot be significant only takes from the others: the least able are left out until all that remain can be.
    """
    if len(floors) != len(paths) or not all(floor >= 0 for floor in floors):
        raise UsageError(f"{len(paths)} paths need as many floors from 0 on, got {len(floors)}")
    kept = list(range(len(paths)))
    while kept:
        weights = family_weights([paths[i] for i in kept])
        excess = [floors[i] / (level * weight) for i, weight in zip(kept, weights, strict=True)]
        worst = max(excess)
        if worst <= 1:
            break
        kept = [i for i, ratio in zip(kept, excess, strict=True) if ratio < worst]
    return kept
