"""A source's units and its statistic, in one form for generic statistics and for functions of an audit's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lm_audit.errors import DataError
from lm_audit.sources.functions import RowFunction, row_function, weighted_form
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import STATISTICS, Evaluate, Prepare
from lm_audit.sources.units import Floats, RowTable, Units, units_of


def gathered(source: MetricSource, table: RowTable) -> Units:
    """The units of a source; of an audit's own function every row that matches, with the value 0."""
    if source.statistic in STATISTICS:
        return units_of(source, table)
    rows = [table.rows[i] for i in np.flatnonzero(table.mask(source.where))]
    return Units([str(row.get("item")) for row in rows], np.zeros(len(rows)), rows)


def statistic_of(source: MetricSource) -> Prepare:
    """The statistic by its name; ``DataError`` where nobody registered it."""
    if source.statistic in STATISTICS:
        return STATISTICS[source.statistic]
    function = row_function(source.statistic)
    if function is None:
        raise DataError(f"statistic {source.statistic!r} is not known; generic ones are {', '.join(STATISTICS)}")
    return weighted_form(source.statistic) or _weighted(function)


def _weighted(function: RowFunction) -> Prepare:
    """A function of rows as one of weights: a row that counts twice is given twice."""

    def prepare(units: Units, options: Mapping[str, object]) -> Evaluate:
        def evaluate(weights: Floats) -> Floats:
            found = np.full(len(weights), np.nan)
            for number, counts in enumerate(weights.astype(np.int64)):
                rows = [row for row, count in zip(units.rows, counts, strict=True) for _ in range(count)]
                value = function(rows, options) if rows else None
                found[number] = np.nan if value is None else value
            return found

        return evaluate

    return prepare
