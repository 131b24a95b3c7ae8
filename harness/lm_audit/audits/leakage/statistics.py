"""Statistics of this audit's own, recomputed from recorded rows (see :mod:`lm_audit.sources.functions`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_audit.sources.functions import RowFunction
from lm_audit.sources.recomputing import recompute
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import RowTable, units_of

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


STATISTICS: Mapping[str, RowFunction] = {
    "leakage.mitigation_share": share_of_rows,
    "leakage.detectable": detectable_of_rows,
}
