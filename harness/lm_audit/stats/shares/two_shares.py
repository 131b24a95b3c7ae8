"""The exact test that two independent shares are alike: Boschloo's, which knows no margin and so wastes less than
Fisher's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lm_audit.stats.inputs import Array

MOST = 250_000
"""Tables (yes answers of one side times those of the other) of which all are tried."""

STEPS = 999
"""True shares that are tried: between two of them the probability of a region hardly moves."""


def boschloo_p(first: int, n_first: int, second: int, n_second: int) -> float:
    """Two-sided p-value of ``first`` yes answers of ``n_first`` against ``second`` of ``n_second``.

    Tables are ordered by Fisher's one-sided p; the p-value is the largest probability, over all shares that both may
    have, of a table as far out, twice the smaller of both sides (Boschloo 1970; as ``scipy.stats.boschloo_exact``).
    """
    return min(1.0, 2 * min(_upper(first, n_first, second, n_second), _upper(second, n_second, first, n_first)))


def possible(n_first: int, n_second: int) -> bool:
    """Whether so many answers are few enough for all tables to be tried."""
    return (n_first + 1) * (n_second + 1) <= MOST


def _upper(first: int, n_first: int, second: int, n_second: int) -> float:
    """One-sided: the first share is the larger one."""
    fisher, by_first, by_second = _tables(n_first, n_second)
    reached = (fisher <= fisher[first, second] * (1 + 1e-9)).astype(np.float64)
    # Summed over the second side for each true share, then over the first.
    return float(((reached @ by_second) * by_first).sum(axis=0).max())


@lru_cache(maxsize=8)
def _tables(n_first: int, n_second: int) -> tuple[Array, Array, Array]:
    """Fisher's one-sided p of all tables [n_first + 1, n_second + 1]; binomial probabilities [n + 1, shares]."""
    from scipy.stats import binom, hypergeom

    one, other = np.arange(n_first + 1)[:, None], np.arange(n_second + 1)[None, :]
    fisher = hypergeom.sf(one - 1, n_first + n_second, one + other, n_first)
    shares = np.arange(1, STEPS + 1) / (STEPS + 1)
    first, second = (
        np.asarray(binom.pmf(np.arange(n + 1)[:, None], n, shares), dtype=np.float64) for n in (n_first, n_second)
    )
    return np.asarray(fisher, dtype=np.float64), first, second
