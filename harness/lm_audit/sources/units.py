"""From rows to the units whose values a statistic takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import DataError
from lm_audit.sources.record import MetricSource, Term, Where

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = Mapping[str, Any]


class RowTable:
    """The rows of a case by columns; columns, numbers, filters and units are made once.

    The metrics of a case ask for the same ones again and again, some of thousands of rows.
    """

    def __init__(self, rows: Sequence[Row]):
        self.rows = list(rows)
        self._columns: dict[str, NDArray[np.object_]] = {}
        self._numbers: dict[str, Floats] = {}
        self._masks: dict[str, Mask] = {}
        self._units: dict[tuple[tuple[str, ...], str], tuple[Integers, Integers, Integers, list[Hashable]]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns that at least one row has."""
        return frozenset[str]().union(*self.rows)

    def column(self, name: str) -> NDArray[np.object_]:
        """The column's values as they are, ``None`` where a row lacks it."""
        if name not in self._columns:
            self._columns[name] = column_of(self.rows, name)
        return self._columns[name]

    def numbers(self, name: str) -> Floats:
        """The column as floats, NaN where it holds no finite number."""
        if name not in self._numbers:
            self._numbers[name] = numbers(self.column(name))
        return self._numbers[name]

    def mask(self, where: Where) -> Mask:
        """Which rows match; not to be written to."""
        key = _key(where)
        if key not in self._masks:
            self._masks[key] = matching(self.column, where, len(self.rows))
            self._masks[key].flags.writeable = False
        return self._masks[key]

    def units(self, names: tuple[str, ...], where: Where) -> tuple[Integers, Integers, Integers, list[Hashable]]:
        """Which rows match; then what :func:`unit_codes` says of them. None of it is to be written to."""
        key = names, _key(where)
        if key not in self._units:
            chosen = np.flatnonzero(self.mask(where))
            self._units[key] = chosen, *unit_codes(names, self, chosen)
        return self._units[key]


class Units:
    """Units with one value each.

    ``keys`` names each unit (shape n), ``values`` has shape (n,), ``rows`` holds the first row of each unit.
    """

    def __init__(self, keys: Sequence[Hashable], values: Floats, rows: Sequence[Row]):
        self.keys = list(keys)
        self.values = values
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.keys)

    def column(self, name: str) -> NDArray[np.object_]:
        """What the first row of each unit holds under ``name``, ``None`` where it lacks it."""
        return column_of(self.rows, name)

    def numbers(self, name: str) -> Floats:
        """A column as floats, NaN where it holds no number."""
        return numbers(self.column(name))

    def mask(self, where: Where) -> Mask:
        """Which units match, by their first rows."""
        return matching(self.column, where, len(self))

    def take(self, indices: Sequence[int] | Integers) -> Units:
        """Some of the units, in the order given."""
        return Units([self.keys[i] for i in indices], self.values[indices], [self.rows[i] for i in indices])

    def then(self, other: Units) -> Units:
        """These units followed by others."""
        values = np.concatenate([self.values, other.values])
        return Units([*self.keys, *other.keys], values, [*self.rows, *other.rows])


def units_of(source: MetricSource, table: RowTable) -> Units:
    """The units of a source; ``DataError`` where a column that it names is in no row."""
    _check_columns(source, table)
    chosen, codes, first, keys = table.units(source.unit or ("item",), source.where)
    values = np.zeros(len(keys))
    for term in source.terms or (Term(),):
        values += term.weight * _term_values(term, source, table, chosen, codes, len(keys))
    values = transformed(values, source.transform)
    known = np.flatnonzero(np.isfinite(values))
    return Units([keys[i] for i in known], values[known], [table.rows[i] for i in chosen[first[known]]])


def column_of(rows: Sequence[Row], name: str) -> NDArray[np.object_]:
    """A column of rows, ``None`` where a row lacks it."""
    made = np.empty(len(rows), dtype=object)
    for index, row in enumerate(rows):
        made[index] = row.get(name)
    return made


def numbers(column: NDArray[np.object_]) -> Floats:
    """Values as floats; text, ``None`` and what is not finite become NaN, truth values 0 and 1."""
    return np.array([_number(value) for value in column], dtype=np.float64)


def matching(column: Callable[[str], NDArray[np.object_]], where: Where, n: int) -> Mask:
    """Which of ``n`` entries hold for all columns of ``where``."""
    found = np.ones(n, dtype=bool)
    for name, wanted in where.items():
        allowed = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
        found &= np.array([value in allowed for value in column(name)], dtype=bool)
    return found


def _key(where: Where) -> str:
    """A name of a filter; filters of one meaning may have several."""
    return repr(list(where.items()))


def _check_columns(source: MetricSource, table: RowTable) -> None:
    named = {*source.where, *source.unit, *source.clusters, *(name for term in source.terms for name in term.where)}
    named |= {term.column or source.column or "" for term in source.terms} if source.terms else {source.column or ""}
    if "" in named:
        raise DataError(f"source of a metric by {source.statistic!r}: it names no column")
    missing = sorted(named - table.names)
    if missing:
        raise DataError(f"source of a metric by {source.statistic!r}: no row has the column {', '.join(missing)}")


def unit_codes(names: tuple[str, ...], table: RowTable, chosen: Integers) -> tuple[Integers, Integers, list[Hashable]]:
    """Of each chosen row its unit's number; of each unit its first chosen row and its key."""
    columns = [table.column(name)[chosen] for name in names]
    seen: dict[Hashable, int] = {}
    first: list[int] = []
    codes = np.empty(len(chosen), dtype=np.int64)
    for index, key in enumerate(zip(*columns, strict=True)):
        name: Hashable = str(key[0]) if len(key) == 1 else tuple(map(str, key))
        number = seen.setdefault(name, len(seen))
        if number == len(first):
            first.append(index)
        codes[index] = number
    return codes, np.array(first, dtype=np.int64), list(seen)


def _term_values(
    term: Term, source: MetricSource, table: RowTable, chosen: Integers, codes: Integers, count: int
) -> Floats:
    column = table.numbers(term.column or source.column or "")[chosen]
    used = np.isfinite(column)
    if term.where:
        used &= table.mask(term.where)[chosen]
    where, values = codes[used], column[used]
    sizes = np.bincount(where, minlength=count)
    if source.within in ("max", "min"):
        extreme = np.full(count, -np.inf if source.within == "max" else np.inf)
        (np.maximum if source.within == "max" else np.minimum).at(extreme, where, values)
        return np.where(sizes > 0, extreme, np.nan)
    sums = np.bincount(where, weights=values, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sizes > 0, sums / sizes if source.within == "mean" else sums, np.nan)


def transformed(values: Floats, transform: str | None) -> Floats:
    """Values of units as a source's ``transform`` turns them."""
    if transform == "abs":
        return np.abs(values)
    if transform == "negate":
        return -values
    if transform == "sign_share":
        return np.asarray((np.sign(values) + 1) / 2, dtype=np.float64)
    return values


def _number(value: object) -> float:
    if isinstance(value, int | float | np.number | np.bool_) and math.isfinite(value):
        return float(value)
    return math.nan
