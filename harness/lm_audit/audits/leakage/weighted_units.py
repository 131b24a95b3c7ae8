"""The values of a source's units for many weightings of its rows at once.

An audit's own statistic is a function of rows. One that rests on units (questions of several rows) would gather them
anew for each of thousands of exchanges; here that is two products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_audit.errors import DataError
from lm_audit.sources.record import MetricSource, Term
from lm_audit.sources.units import Floats, Integers, RowTable, Units, transformed, unit_codes


@dataclass(frozen=True)
class UnitValues:
    """``of`` takes weights of rows (B, rows) and gives values of units (B, units), NaN where a unit has none.

    A row of weight 0 is not there. Each unit counts once, however often its rows do. ``own``: the weight (units) that
    the source's option ``weight`` gives a unit, 1 without it. ``first``: the place of each unit's first row.
    """

    of: Callable[[Floats], Floats]
    own: Floats
    first: Integers


def weighted_units(source: MetricSource, units: Units) -> UnitValues:
    """The units of ``source`` among rows that are given one by one (:func:`lm_audit.sources.evaluation.gathered`).

    ``DataError`` for a source whose units take the largest or smallest of their rows.
    """
    if source.within not in ("mean", "sum"):
        raise DataError(f"units that take the {source.within} of their rows have no weighted form")
    table = RowTable(units.rows)
    chosen = table.mask(source.where)
    codes, first, keys = unit_codes(source.unit or ("item",), table, np.flatnonzero(chosen))
    place = np.full(len(units), -1)
    place[chosen] = codes
    terms = [(term.weight, *_parts(term, source, table, place, len(keys))) for term in source.terms or (Term(),)]

    def values(weights: Floats) -> Floats:
        found = np.zeros((len(weights), len(keys)))
        for weight, sums, there in terms:
            count = _product(weights, there)
            with np.errstate(invalid="ignore", divide="ignore"):
                value = _product(weights, sums) / (count if source.within == "mean" else 1.0)
            found += weight * np.where(count > 0, value, np.nan)
        return transformed(found, source.transform)

    first = np.flatnonzero(chosen)[first]
    return UnitValues(values, _own(source.options, table, first), first)


def weighted_mean(source: MetricSource, units: Units) -> Callable[[Floats], Floats]:
    """A source that is a mean over its units, scale and offset included, as a function of weights of rows."""
    if source.statistic != "mean":
        raise DataError(f"statistic {source.statistic!r} is no mean over units")
    made = weighted_units(source, units)

    def evaluate(weights: Floats) -> Floats:
        values = made.of(weights)
        own = np.where(np.isfinite(values), made.own, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (own * np.nan_to_num(values)).sum(axis=1) / own.sum(axis=1)
        return np.asarray(source.offset + source.scale * mean, dtype=np.float64)

    return evaluate


def _parts(term: Term, source: MetricSource, table: RowTable, place: Any, count: int) -> tuple[Any, Any]:
    """Of each row (units, rows; few entries are not 0) what it adds to its unit's sum and to the number of its rows."""
    from scipy.sparse import csr_matrix

    column = table.numbers(term.column or source.column or "")
    used = np.flatnonzero((place >= 0) & np.isfinite(column) & table.mask(term.where))
    where, shape = (place[used], used), (count, len(column))
    return csr_matrix((column[used], where), shape), csr_matrix((np.ones(len(used)), where), shape)


def _product(weights: Floats, parts: Any) -> Floats:
    found: Floats = (parts @ weights.T).T
    return found


def _own(options: Mapping[str, Any], table: RowTable, first: Any) -> Floats:
    name = options.get("weight")
    return np.ones(len(first)) if name is None else np.nan_to_num(table.numbers(name)[first])
