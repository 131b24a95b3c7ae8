"""How many independent units stand behind a metric, from its source and its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.errors import DataError
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import Mask, RowTable, Units, units_of
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence


def with_units(evidence: Evidence) -> dict[str, Estimate]:
    """The metrics of ``evidence``; those that do not say their independent units get them from their sources."""
    table = RowTable(evidence.rows)
    found = {}
    for name, estimate in evidence.metrics.items():
        source = evidence.sources.get(name)
        found[name] = estimate
        if source is None or estimate.units is not None or estimate.value is None:
            continue
        try:
            units = count_units(source, table)
        except (DataError, KeyError, TypeError):  # A source that its rows contradict is for the audit's tests to find.
            continue
        if units is not None and units != estimate.n:
            # Exact is an interval of answers that are independent, which those of one cluster are not.
            exact = estimate.fewest is None or estimate.fewest < FEWEST_CLUSTERS
            fewest = FEWEST_CLUSTERS if source.clusters and exact else estimate.fewest
            found[name] = replace(estimate, units=units, fewest=fewest)
    return found


def count_units(source: MetricSource, table: RowTable) -> int | None:
    """The independent units of a metric: its clusters, where crossed the fewer, on the smaller of the sides compared.

    ``None`` for a statistic of an audit's own that names no clusters. ``DataError`` where a column is in no row.
    """
    if source.statistic not in STATISTICS:
        chosen = table.mask(source.where)
        known = [len(set(map(str, table.column(name)[chosen]))) for name in source.clusters]
        return min(known) if known and chosen.any() else None
    units = units_of(source, table)
    if not len(units):
        return 0
    return min(_independent(units, side, source.clusters) for side in _sides(units, source))


def _sides(units: Units, source: MetricSource) -> list[Mask]:
    """The groups of units that the statistic compares; one group of all where it compares none."""
    options = source.options
    if "members" in options and "controls" in options:
        members = units.mask(options["members"]) & units.mask(options.get("tier", {}))
        return [members, units.mask(options["controls"])]
    if "first" in options and "second" in options:
        return [units.mask(options["first"]), units.mask(options["second"])]
    if "group" in options:
        names = np.array([str(name) for name in units.column(options["group"])])
        listed = [str(name) for name in options.get("groups") or dict.fromkeys(names)]
        return [side for name in listed if (side := names == name).any()]
    return [np.ones(len(units), dtype=bool)]


def _independent(units: Units, side: Mask, clusters: tuple[str, ...]) -> int:
    if not clusters:
        return int(side.sum())
    return min(len(set(map(str, units.column(name)[side]))) for name in clusters)
