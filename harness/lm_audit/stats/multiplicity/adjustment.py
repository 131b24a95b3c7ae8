"""Adjustment of p-values for the number of tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lm_audit.stats.checked import checked
from lm_audit.stats.inputs import Array


@checked
def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) adjusted p-values, in the order given: they bound the chance of any false rejection.

    What is no p-value (None, NaN, outside [0, 1]) stays None and does not count as a test.
    """
    return _adjusted(p, _holm)


@checked
def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's (1995) adjusted p-values, in the order given: they bound the false discovery rate.

    What is no p-value (None, NaN, outside [0, 1]) stays None and does not count as a test.
    """
    return _adjusted(p, _benjamini_hochberg)


def _adjusted(p: Sequence[float | None], adjust: Callable[[Array], Array]) -> list[float | None]:
    usable = [i for i, value in enumerate(p) if value is not None and math.isfinite(value) and 0 <= value <= 1]
    answer: list[float | None] = [None] * len(p)
    if usable:
        raw = np.array([p[i] for i in usable], dtype=np.float64)
        for i, value in zip(usable, adjust(raw), strict=True):
            answer[i] = float(value)
    return answer


def _holm(raw: Array) -> Array:
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _benjamini_hochberg(raw: Array) -> Array:
    from scipy.stats import false_discovery_control

    # The library's rounding may fall one bit below the raw value.
    return np.maximum(np.asarray(false_discovery_control(raw, method="bh"), dtype=np.float64), raw)
