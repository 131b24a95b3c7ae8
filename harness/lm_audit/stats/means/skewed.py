"""How much further an interval must reach towards the longer tail of few skewed values."""

from __future__ import annotations

from lm_audit.stats.inputs import Array

SKEWED = 15.0
"""Over n, by how much of itself the interval grows towards the long tail for each unit of skewness."""

SPARED = 0.25
"""Of normal values a skewness of so many times its own chance is none: see :func:`growth`."""

STRONG = 1.5
"""A skewness that fewer than 2 % of 8 normal values show, 15 % of exponential and 44 % of lognormal ones (SD 1.5)."""

ENOUGH = 40
"""Units from which on what a long tail hides is little."""


def skewness(values: Array) -> float:
    """The third moment of ``values`` (n,) about their mean over the second to the power 1.5; 0 without spread."""
    away = values - values.mean()
    variance = float((away**2).mean())
    return float((away**3).mean()) / variance**1.5 if variance > 0 else 0.0


def growth(skew: float, units: int, *, spared: float = 0.0) -> tuple[float, float]:
    """The factors by which the lower and the upper part of an interval grow.

    A mean of few skewed values lies below the true one in most samples, with a spread at hand that is then too small:
    of 8 lognormal values (SD of the logarithm 1) t intervals cover 84 %, bootstrap-t 88 to 91. The largest values were
    not drawn, and what was drawn shows half of the skewness. ``spared`` is how much of the skewness that chance gives
    to ``units`` normal values, the root of 6 / n, does not count: for intervals that are wide for few values already.
    By simulation: ``benchmarks/coverage_skewed.py``.
    """
    chance, rate = spared * (6 / units) ** 0.5, SKEWED / units
    return 1 + rate * max(0.0, -skew - chance), 1 + rate * max(0.0, skew - chance)


def remark(skew: float, units: int) -> str | None:
    """What a reader must know of an interval of few values that look strongly skewed, None of others.

    The interval of a mean that holds for every distribution does not exist (Bahadur and Savage 1956): it would have to
    allow for values so rare and so far out that no sample shows them.
    """
    if abs(skew) < STRONG or units >= ENOUGH:
        return None
    return f"strongly skewed ({skew:.1f}): what lies furthest out may not be among so few, and no interval knows of it"
