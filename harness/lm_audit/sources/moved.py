"""Which units of a metric differ between two runs, and whether arithmetic alone sets them apart."""

from __future__ import annotations

from collections.abc import Sequence

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

ROUNDED = 1e-12
"""Of the numbers that make up a statistic: what double precision may set apart where nothing changed."""

OF_ONE_SIZE = frozenset({"mean", "quantile", "median", "difference", "max_min", "mean_of_groups"})
"""Statistics in the unit of their values, which may cancel: what is left is as exact as the largest of them."""


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


def rounding_of(source: MetricSource, found: Sequence[Floats], *runs: Units) -> float:
    """What rounding may set apart in a statistic that is ``found`` in each of the runs."""
    sizes = [float(np.abs(np.concatenate(found)).max())]
    for units in runs:
        values = np.abs(units.values)
        if source.statistic in OF_ONE_SIZE:
            sizes.append(float(values.max()))
        elif source.statistic == "sum":
            sizes.append(float(values.sum()))
        elif source.statistic == "ratio":
            below = abs(float(np.nansum(units.numbers(str(source.options["denominator"])))))
            sizes.append(float(values.sum()) / below)
    return ROUNDED * max(sizes)


def _spread(values: Floats) -> float:
    """The standard deviation, or less where a few values far out make it: the middle half's width."""
    low, high = np.percentile(values, [25, 75])
    return min(float(values.std()), float(high - low))
