"""A metric's value from its rows, as its source says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lm_audit.sources.evaluation import gathered, statistic_of
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import RowTable


def recompute(source: MetricSource, rows: Sequence[Mapping[str, Any]] | RowTable) -> float | None:
    """The metric's value from the rows of its case; ``None`` where they give none (no row matches, an empty group).

    Raises ``DataError`` for a column that no row has, and for a statistic that nobody registered.
    """
    prepare = statistic_of(source)
    units = gathered(source, rows if isinstance(rows, RowTable) else RowTable(rows))
    value = float(prepare(units, source.options)(np.ones((1, len(units))))[0]) if len(units) else math.nan
    return source.offset + source.scale * value if math.isfinite(value) else None
