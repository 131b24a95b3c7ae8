"""Checks that every statistic makes on its input: a reason in words instead of a NaN or a library's exception.

The checks return the array, or a ``str`` that says why there is none; callers put that reason into ``Estimate.note``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.errors import UsageError
from lm_audit.stats.estimate import Estimate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGE_EXPONENT = 200
"""Beyond 2**200 (or below 2**-200) cubes and squares come near the ends of the float range, and data are rescaled."""


def finite_array(values: ArrayLike, name: str = "data", *, ndim: int = 1, minimum: int = 1) -> Array | str:
    """The values as float64, or why they cannot be used: too few of them, NaN or infinity among them."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return f"{name} is empty"
    if array.ndim != ndim:
        raise UsageError(f"{name} has shape {array.shape}; {ndim} dimension(s) are needed")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        return f"{name} holds {array.ravel()[bad[0]]} at index {bad[0]} ({bad.size} of {array.size} values not finite)"
    if array.size < minimum:
        return f"{name} has {array.size} value(s), at least {minimum} are needed"
    return array


def paired_arrays(a: ArrayLike, b: ArrayLike, *, minimum: int = 1) -> tuple[Array, Array] | str:
    """Two arrays of one length, or why not; ``UsageError`` where the lengths differ."""
    first = finite_array(a, "a", minimum=minimum)
    second = finite_array(b, "b", minimum=minimum)
    if np.shape(a) != np.shape(b):
        raise UsageError(f"paired values need one length: a has {np.size(a)}, b has {np.size(b)}")
    if isinstance(first, str):
        return first
    if isinstance(second, str):
        return second
    return first, second


def two_groups(members: ArrayLike, controls: ArrayLike) -> tuple[Array, Array] | str:
    """Two independent samples, or why not."""
    first = finite_array(members, "the first group")
    second = finite_array(controls, "the second group")
    if isinstance(first, str):
        return first
    return second if isinstance(second, str) else (first, second)


def whole(name: str, value: Any, *, low: int, high: int | None = None) -> int | str:
    """The value as an integer within [low, high], or why it is none."""
    if value is None or not math.isfinite(value) or value != int(value):
        return f"{name} is {value}, a whole number is needed"
    if value < low or (high is not None and value > high):
        return f"{name} is {value:g}, must lie between {low} and {'infinity' if high is None else high}"
    return int(value)


def number(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf) -> float | str:
    """The value as a finite float within [low, high], or why it is none."""
    if value is None or not math.isfinite(value):
        return f"{name} is {value}, a finite number is needed"
    if not low <= value <= high:
        return f"{name} is {value:g}, must lie between {low:g} and {high:g}"
    return float(value)


def first_reason(checked: Iterable[object]) -> str | None:
    """The first reason among results of checks, None where all passed."""
    return next((item for item in checked if isinstance(item, str)), None)


def check_share(name: str, value: float) -> float:
    """``value`` if it lies strictly between 0 and 1; ``UsageError`` otherwise."""
    if not 0 < value < 1:
        raise UsageError(f"{name} is {value!r}, must lie strictly between 0 and 1 (0.95 for 95%)")
    return value


def large_exponent(*arrays: Array) -> int:
    """The power of two to divide by before squaring; 0 for data of ordinary size, so that no result changes."""
    largest = max(float(np.abs(array).max()) for array in arrays)
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > LARGE_EXPONENT and largest > 0 else 0


def to_unit(values: Array) -> Array:
    """The values times a power of two (no bit is lost), the largest near 1: for what does not depend on scale."""
    return np.asarray(np.ldexp(values, -math.frexp(float(np.abs(values).max()))[1]), dtype=np.float64)


def rounding(*arrays: Array) -> float:
    """A spread that mere rounding of the values explains, in their unit."""
    return 2.0 * float(np.finfo(np.float64).eps) * max(float(np.abs(array).max()) for array in arrays)


def p_value(value: float, *, n: int, method: str, note: str | None = None) -> Estimate:
    """A test's answer: its p-value, clipped into [0, 1]."""
    return Estimate(min(1.0, max(0.0, float(value))), n=n, confidence=None, method=method, unit="p", note=note)


def no_p_value(reason: str, *, method: str, n: int | None = None) -> Estimate:
    """A test that could not be made, with the reason."""
    return Estimate.not_estimable(reason, n=n, method=method, confidence=None, unit="p")


def cluster_numbers(clusters: Sequence[Hashable] | ArrayLike) -> Integers:
    """Cluster labels as numbers from 0 by first appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in clusters], dtype=np.int64)  # type: ignore[union-attr, arg-type]
