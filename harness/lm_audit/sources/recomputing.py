"""A metric's value from its rows, as its source says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lm_audit.errors import DataError
from lm_audit.sources.functions import row_function
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import RowTable, units_of


def recompute(source: MetricSource, rows: Sequence[Mapping[str, Any]] | RowTable) -> float | None:
    """The metric's value from the rows of its case; ``None`` where they give none (no row matches, an empty group).

    Raises ``DataError`` for a column that no row has, and for a statistic that nobody registered.
    """
    table = rows if isinstance(rows, RowTable) else RowTable(rows)
    prepare = STATISTICS.get(source.statistic)
    value: float | None
    if prepare is None:
        function = row_function(source.statistic)
        if function is None:
            raise DataError(
                f"statistic {source.statistic!r} is not known; the generic ones are {', '.join(STATISTICS)}"
            )
        chosen = [table.rows[i] for i in np.flatnonzero(table.mask(source.where))]
        value = function(chosen, source.options)
    else:
        units = units_of(source, table)
        value = float(prepare(units, source.options)(np.ones((1, len(units))))[0]) if len(units) else None
    return None if value is None or not math.isfinite(value) else source.offset + source.scale * value
