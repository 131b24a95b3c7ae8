"""From a bootstrap distribution to an interval: percentile and BCa limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.stats.degrees_of_freedom import degrees_of_freedom
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, check_share
from lm_audit.stats.means.skewed import SPARED, growth, remark

METHODS = ("BCa", "percentile")


@dataclass(frozen=True)
class Resampled:
    """A statistic with its bootstrap distribution.

    ``jackknife`` gives the leave-one-out statistics, one array for each sample that was resampled on its own; it is
    called for BCa and t. ``n`` counts the values, ``scheme`` says in words what was resampled, ``units`` and ``fewest``
    are those of the :class:`Estimate`.
    """

    value: float
    distribution: Array
    n: int
    scheme: str
    jackknife: Callable[[], Sequence[Array]] | None = None
    units: int | None = None
    fewest: int | None = None


def resolve_method(method: str) -> str:
    """The method's own spelling; ``UsageError`` for an unknown one."""
    for known in METHODS:
        if method.lower() == known.lower():
            return known
    raise UsageError(f"interval method is {method!r}, must be one of {', '.join(METHODS)}")


def percentile_limits(distribution: Array, confidence: float) -> tuple[float, float]:
    """Equal-tailed percentiles, linear between order statistics."""
    alpha = (1 - confidence) / 2
    low, high = np.percentile(distribution, [100 * alpha, 100 * (1 - alpha)])
    return float(low), float(high)


def acceleration(jackknives: Sequence[Array]) -> float:
    """BCa's acceleration of one or several independent samples, as scipy.stats.bootstrap has it; NaN where 0 / 0.

    Source: Efron and Tibshirani 1993, eq. 14.15, 15.36 for several samples.
    """
    influences = [(len(values) - 1) * (values.mean() - values) for values in jackknives]
    # Independent of scale, so the cubes are taken near 1, where they neither overflow nor vanish.
    exponent = math.frexp(max(float(np.abs(influence).max()) for influence in influences))[1]
    numerator = denominator = 0.0
    for influence in influences:
        scaled = np.ldexp(influence, -exponent)
        numerator += float((scaled**3).sum()) / len(scaled) ** 3
        denominator += float((scaled**2).sum()) / len(scaled) ** 2
    return numerator / (6 * denominator**1.5) if denominator > 0 else math.nan


def bca_limits(
    value: float, distribution: Array, jackknives: Sequence[Array], confidence: float
) -> tuple[float, float]:
    """Bias-corrected and accelerated limits; NaN where not defined (equal jackknife values, one-sided spread).

    Same definition as ``scipy.stats.bootstrap(method="BCa")``, which takes no clusters and whose jackknife costs n
    squared.
    """
    from scipy.special import ndtr, ndtri

    below = ((distribution < value).sum() + (distribution <= value).sum()) / (2 * len(distribution))
    bias, accelerated = float(ndtri(below)), acceleration(jackknives)
    limits = []
    for tail in ((1 - confidence) / 2, 1 - (1 - confidence) / 2):
        shifted = bias + float(ndtri(tail))
        share = float(ndtr(bias + shifted / (1 - accelerated * shifted)))
        limits.append(float(np.percentile(distribution, 100 * share)) if math.isfinite(share) else math.nan)
    return limits[0], limits[1]


def bootstrap_interval(resampled: Resampled, *, confidence: float, method: str) -> Estimate:
    """The estimate of a resampled statistic; degenerate cases get a note, never a NaN.

    No spread: a zero-width interval. BCa undefined: percentile limits. Undefined resamples: left out and counted.
    """
    check_share("confidence", confidence)
    method = resolve_method(method)
    usable = resampled.distribution[np.isfinite(resampled.distribution)]
    label, notes = f"{method} bootstrap, {resampled.scheme}, B={len(resampled.distribution)}", []
    if not math.isfinite(resampled.value) or not usable.size:
        return Estimate.not_estimable(
            "the statistic is not a finite number on these data", n=resampled.n, method=label, confidence=confidence
        )
    if usable.size < resampled.distribution.size:
        notes.append(f"{resampled.distribution.size - usable.size} resamples had no finite value and were left out")
    if usable.min() == usable.max():
        low = high = resampled.value
        notes.append("every resample gives the same value: zero-width interval")
    else:
        low, high, fallback = _limits(resampled, usable, confidence, method)
        notes += [fallback] if fallback else []
    return Estimate(
        resampled.value,
        low,
        high,
        n=resampled.n,
        confidence=confidence,
        method=label,
        note="; ".join(notes) or None,
        units=resampled.units,
        fewest=resampled.fewest,
    )


DRAWS = 799
"""Resamples for a standard error, which needs far fewer than a percentile."""


def t_interval(resampled: Resampled, *, confidence: float, freedom: float | None = None) -> Estimate:
    """Student's limits with the standard error of the jackknife or the bootstrap, whichever is the larger.

    The jackknife fails what does not change smoothly: of medians and quantiles it covers 83 to 93 %. Towards the longer
    tail of what each unit adds the interval reaches further (:mod:`lm_audit.stats.means.skewed`), and of few units a
    note says what it cannot know. ``freedom``: degrees of freedom, where clusters of uneven size are worth fewer than
    there are.
    """
    from scipy.special import stdtrit

    assert resampled.jackknife is not None
    label = f"t with the larger standard error of jackknife and bootstrap, {resampled.scheme}"
    known: dict[str, Any] = {"n": resampled.n, "confidence": confidence, "method": label}
    value, usable = resampled.value, resampled.distribution[np.isfinite(resampled.distribution)]
    if not math.isfinite(value):
        return Estimate.not_estimable("the statistic is not a finite number on these data", **known)
    known |= {"units": resampled.units, "fewest": resampled.fewest}
    sides = resampled.jackknife()
    if not all(np.isfinite(without).all() for without in sides):
        return Estimate(value, note="without one of the units there is no value: no interval", **known)
    units = min(map(len, sides))
    scale = max(float(np.abs(without - without.mean()).max()) for without in sides) or 1.0
    away = [(without.mean() - without) / scale * (1 - 1 / len(without)) ** 0.5 for without in sides]
    parts = [(float((part**2).sum()), len(part) - 1) for part in away]
    variance, third = sum(part for part, _ in parts), sum(float((part**3).sum()) for part in away)
    # The bootstrap's variance divides by the number of units where one less is due.
    drawn = float(usable.std(ddof=1)) * (units / (units - 1)) ** 0.5 if usable.size > 1 else 0.0
    error = max(scale * variance**0.5, drawn)
    if error <= 1e-12 * abs(value):
        return Estimate(value, value, value, note="no unit makes a difference: zero-width interval", **known)
    freedom = degrees_of_freedom(parts) if freedom is None else freedom
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    skew = third / variance**1.5 * units**0.5 if variance > 0 else 0.0
    down, up = growth(skew, units, spared=SPARED)
    left_out = resampled.distribution.size - usable.size
    notes = [f"{left_out} resamples had no finite value and were left out"] if left_out else []
    if hidden := remark(skew, units):
        notes.append(f"what each unit adds is {hidden}")
    note = "; ".join(notes) or None
    low, high = value - down * half, value + up * half
    if not (math.isfinite(low) and math.isfinite(high)):
        return Estimate(value, note="the interval exceeds the range of floats", **known)
    return Estimate(value, low, high, note=note, **known)


def _limits(resampled: Resampled, usable: Array, confidence: float, method: str) -> tuple[float, float, str | None]:
    if method == "BCa" and resampled.jackknife is not None:
        with np.errstate(all="ignore"):
            low, high = bca_limits(resampled.value, usable, resampled.jackknife(), confidence)
        if math.isfinite(low) and math.isfinite(high) and low <= high:
            return low, high, None
        return *percentile_limits(usable, confidence), "BCa is not defined on these data: percentile limits"
    return *percentile_limits(usable, confidence), None


def rescaled(estimate: Estimate, exponent: int) -> Estimate:
    """The estimate times two to a power; no value where that leaves the range of floats."""
    if not exponent or estimate.value is None:
        return estimate
    value, low, high = (
        None if x is None else float(np.ldexp(x, exponent)) for x in (estimate.value, estimate.low, estimate.high)
    )
    if not all(x is None or np.isfinite(x) for x in (value, low, high)):
        return Estimate.not_estimable(
            "the result exceeds the range of floats",
            n=estimate.n,
            method=estimate.method,
            confidence=estimate.confidence,
        )
    return replace(estimate, value=value, low=low, high=high)
