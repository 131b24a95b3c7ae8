"""Finds the item column behind a metric, so that two runs can be compared item by item."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.stats.estimate import Estimate

Rows = Sequence[Mapping[str, Any]]
SCALES = (1.0, 100.0)
"""A metric may be the mean of its column, or that mean in per cent."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Column:
    """An item column whose mean, times ``scale``, is the metric."""

    name: str
    scale: float


@dataclass(frozen=True)
class Matched:
    """One column of two runs: values of the items that both have, in the same order, and how many only one has."""

    a: list[float]
    b: list[float]
    only_a: int
    only_b: int


def column_of(metric: str, a: Estimate, b: Estimate, rows_a: Rows, rows_b: Rows) -> Column | None:
    """The column whose mean is the metric's value in both runs, a column of the metric's own name first.

    The ledger does not say which column a metric is made of, so the numbers must: only a column that reproduces the
    recorded value in both runs is used.
    """
    if a.value is None or b.value is None or not rows_a or not rows_b:
        return None
    names = [name for name in rows_a[0] if name != "item"]
    tail = metric.rpartition(".")[2]
    names.sort(key=lambda name: (name not in (metric, tail), tail not in name))
    for name in names:
        mean_a, mean_b = _mean(rows_a, name), _mean(rows_b, name)
        if mean_a is None or mean_b is None:
            continue
        for scale in SCALES:
            if _same(mean_a * scale, a.value) and _same(mean_b * scale, b.value):
                return Column(name, scale)
    return None


def matched(column: Column, rows_a: Rows, rows_b: Rows) -> Matched:
    """The column's own values, not scaled, of the items in both runs."""
    a, b = _values(rows_a, column), _values(rows_b, column)
    both = [item for item in a if item in b]
    return Matched([a[i] for i in both], [b[i] for i in both], len(a) - len(both), len(b) - len(both))


def all_values(column: Column, rows: Rows) -> list[float]:
    """Every value of the column, not scaled."""
    return list(_values(rows, column).values())


def _values(rows: Rows, column: Column) -> dict[str, float]:
    found = ((str(row.get("item")), _number(row.get(column.name))) for row in rows)
    return {item: value for item, value in found if value is not None}


def _mean(rows: Rows, name: str) -> float | None:
    values = [_number(row.get(name)) for row in rows]
    known = [value for value in values if value is not None]
    if not known or any(isinstance(row.get(name), str) for row in rows[:3]):
        return None
    return math.fsum(known) / len(known)


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def _same(x: float, y: float) -> bool:
    return abs(x - y) <= TOLERANCE * max(1.0, abs(x), abs(y))
