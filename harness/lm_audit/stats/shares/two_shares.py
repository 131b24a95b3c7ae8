"""The exact test that two independent shares are alike: Boschloo's, which knows no margin and so wastes less than
Fisher's.
"""

from __future__ import annotations

from functools import lru_cache

MOST = 50_000
"""Tables (yes answers of one side times those of the other) of which all are tried, in a quarter of a second."""


@lru_cache(maxsize=1024)
def boschloo_p(first: int, n_first: int, second: int, n_second: int) -> float:
    """Two-sided p-value of ``first`` yes answers of ``n_first`` against ``second`` of ``n_second``.

    The largest probability, over all shares that both may have, of a table as far out by Fisher's one-sided p, twice
    the smaller of both sides (Boschloo 1970; ``scipy.stats.boschloo_exact``).
    """
    from scipy.stats import boschloo_exact

    return float(boschloo_exact([[first, second], [n_first - first, n_second - second]]).pvalue)


def possible(n_first: int, n_second: int) -> bool:
    """Whether so many answers are few enough for all tables to be tried."""
    return (n_first + 1) * (n_second + 1) <= MOST
