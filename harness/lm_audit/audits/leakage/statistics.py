"""Statistics of this audit's own, recomputed from recorded rows (see :mod:`lm_audit.sources.functions`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lm_audit.audits.leakage.weighted_units import weighted_mean, weighted_units
from lm_audit.sources.functions import RowFunction
from lm_audit.sources.recomputing import recompute
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import Evaluate, Prepare
from lm_audit.sources.units import Floats, RowTable, Units, units_of

Rows = Sequence[Mapping[str, Any]]


def share_of_rows(rows: Rows, options: Mapping[str, Any]) -> float | None:
    """What of the original score above chance mixing the options takes away; ``None`` where nothing is above chance."""
    from lm_audit.audits.leakage.half_option.scores import mitigation_share

    table = RowTable(rows)
    found = [recompute(MetricSource.from_json(options[name]), table) for name in ("original", "shuffled", "chance")]
    original, shuffled, chance = found
    if original is None or shuffled is None or chance is None:
        return None
    return mitigation_share(original, shuffled, chance)


def detectable_of_rows(rows: Rows, options: Mapping[str, Any]) -> float | None:
    """The smallest mean difference that as many units with this spread would show."""
    from lm_audit.audits.leakage.half_option.conditions import detectable

    return detectable(units_of(MetricSource.from_json(options["of"]), RowTable(rows)).values, "").value


def weighted_share(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """:func:`share_of_rows` of weights."""
    names = ("original", "shuffled", "chance")
    means = [weighted_mean(MetricSource.from_json(options[name]), units) for name in names]

    def evaluate(weights: Floats) -> Floats:
        original, shuffled, chance = (mean(weights) for mean in means)
        above = original - chance
        found: Floats = np.full(len(weights), np.nan)
        np.divide(original - shuffled, above, out=found, where=above > 0)
        return found

    return evaluate


def weighted_detectable(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """:func:`detectable_of_rows` of weights."""
    from lm_audit.stats.testing.power import power_paired_t

    values_of = weighted_units(MetricSource.from_json(options["of"]), units).of
    smallest: dict[int, float] = {}

    def evaluate(weights: Floats) -> Floats:
        found = np.full(len(weights), np.nan)
        for number, values in enumerate(values_of(weights)):
            known = values[np.isfinite(values)]
            n = len(known)
            if n < 2 or not (spread := float(known.std(ddof=1))):
                continue
            if n not in smallest:
                smallest[n] = power_paired_t(n=n).value or np.nan
            found[number] = smallest[n] * spread
        return found

    return evaluate


def largest_of_rows(rows: Rows, options: Mapping[str, Any]) -> float | None:
    """The largest mean of a file, of those with questions enough; ``None`` where there is none."""
    from lm_audit.audits.leakage.half_option.single_files import codes_of, largest_of_files

    units = units_of(MetricSource.from_json(options["of"]), RowTable(rows))
    if not len(units):
        return None
    found = float(largest_of_files(units.values[None], codes_of(list(units.column("file"))))[0])
    return found if np.isfinite(found) else None


def weighted_largest(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """:func:`largest_of_rows` of weights."""
    from lm_audit.audits.leakage.half_option.single_files import codes_of, largest_of_files

    made = weighted_units(MetricSource.from_json(options["of"]), units)
    codes = codes_of([units.rows[row].get("file") for row in made.first])
    return lambda weights: largest_of_files(made.of(weights), codes)


STATISTICS: Mapping[str, RowFunction] = {
    "leakage.largest_file": largest_of_rows,
    "leakage.mitigation_share": share_of_rows,
    "leakage.detectable": detectable_of_rows,
}
WEIGHTED: Mapping[str, Prepare] = {
    "leakage.largest_file": weighted_largest,
    "leakage.mitigation_share": weighted_share,
    "leakage.detectable": weighted_detectable,
}
