"""Which units of a metric differ between two runs, and whether arithmetic alone sets them apart."""

from __future__ import annotations

import numpy as np

from lm_audit.sources.content import CONTENT
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import Floats, Mask, Units

BESIDE = ("weight", "denominator", "other", "group")
"""Options that name a column which a statistic reads beside the values."""

ARITHMETIC = 1e-3
"""Of the values' spread: where no unit moved by more, what moved is the arithmetic (another processor, other batches).

A thousandth of an item's standard deviation is of no consequence to anything that is concluded here, and on every item
with one sign it would pass for a change of the model.
"""

ROUNDING = 1e-5
"""Of a value itself: what single precision rounds, where most units have one value and no spread tells more."""


def moved_units(source: MetricSource, a: Units, b: Units) -> Mask:
    """Units that differ between the runs in anything that the statistic reads."""
    if source.statistic not in STATISTICS:
        without = [[{k: v for k, v in row.items() if k != CONTENT} for row in side.rows] for side in (a, b)]
        return np.array([x != y for x, y in zip(*without, strict=True)], dtype=bool)
    moved = a.values != b.values
    for name in BESIDE:
        if name in source.options:
            moved = moved | (a.column(str(source.options[name])) != b.column(str(source.options[name])))
    return np.asarray(moved, dtype=bool)


def by_arithmetic_alone(source: MetricSource, a: Units, b: Units) -> bool:
    """Whether no unit's value moved by more than arithmetic does; unknown, so no, of a function of an audit's own."""
    if source.statistic not in STATISTICS:
        return False
    for name in BESIDE:
        if (
            name in source.options
            and (a.column(str(source.options[name])) != b.column(str(source.options[name]))).any()
        ):
            return False
    spread = min(_spread(a.values), _spread(b.values))
    small = np.maximum(ARITHMETIC * spread, ROUNDING * np.minimum(np.abs(a.values), np.abs(b.values)))
    return bool((np.abs(b.values - a.values) <= small).all())


def _spread(values: Floats) -> float:
    """The standard deviation, or less where a few values far out make it: the middle half's width."""
    low, high = np.percentile(values, [25, 75])
    return min(float(values.std()), float(high - low))
