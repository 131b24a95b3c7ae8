"""Degrees of freedom of a variance that is the sum of several, each estimated on its own."""

from __future__ import annotations

import math
from collections.abc import Iterable

_Z2 = 3.841
"""Square of the normal quantile at 95 %, where the second order is wanted."""

_CUBES = 4 * (3 + 5 * _Z2 + _Z2**2) / (3 * (1 + _Z2))
_SQUARES = 2 * (3 + 7 * _Z2 + 2 * _Z2**2) / (3 * (1 + _Z2))


def degrees_of_freedom(parts: Iterable[tuple[float, float]], whole: float | None = None) -> float:
    """Degrees of freedom of a t over the root of a sum, from (variance, degrees of freedom) of each part.

    ``whole`` is the variance that is used, where that is not the parts' sum. Satterthwaite's (1946), 1 over the sum of
    c**2 / f for shares c, are exact to the first order. Where the part with the fewest
    makes up most of the sum they are too many: of 6 rows and 40 columns a test at 5 % rejects 5.6 %. The second order
    of the same series (Welch 1947; Aspin 1948) takes off what is too much, and no more than is left to that part alone;
    it is not used to add any. Without a variance above 0 and below infinity those of the part with the fewest.
    """
    told = list(parts)
    whole = sum(variance for variance, _ in told) if whole is None else whole
    if not 0 < whole < math.inf:
        return float(min((freedom for _, freedom in told), default=math.inf))
    known = [(variance / whole, freedom) for variance, freedom in told if variance > 0]
    first = sum(share**2 / freedom for share, freedom in known)
    squares = sum((share / freedom) ** 2 for share, freedom in known)
    cubes = sum(share**3 / freedom**2 for share, freedom in known)
    second = max(0.0, _CUBES * cubes - _SQUARES * first**2 - 2 * squares)
    fewest = 1 / min(freedom for _, freedom in known)
    return 1 / min(first + second, max(first, fewest))
