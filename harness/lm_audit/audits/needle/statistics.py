"""Statistics of this audit's own, recomputed from recorded rows (see :mod:`lm_audit.sources.functions`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_audit.sources.functions import RowFunction


def cliff_of_rows(rows: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> float | None:
    """The cliff (tokens) by the column ``score`` and the ``threshold``; ``None`` where it has none."""
    from lm_audit.audits.needle.grid.cells import share
    from lm_audit.audits.needle.grid.cliff import cliff

    lengths: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        lengths.setdefault(int(row["length"]), []).append(row)
    accuracy = {}
    for length, group in lengths.items():
        shared = any(row.get("stretch") for row in group)
        labels = [str(row["stretch"] or row["item"]) for row in group] if shared else None
        accuracy[length] = share([float(row[options["score"]]) for row in group], labels)
    return cliff(accuracy, float(options["threshold"])).value


def spent_of_rows(rows: Sequence[Mapping[str, object]], options: Mapping[str, Any]) -> float:
    """Samples that were asked for as a share of the ``full`` grid."""
    return len(rows) / float(options["full"])


STATISTICS: Mapping[str, RowFunction] = {"needle.cliff": cliff_of_rows, "needle.samples_spent": spent_of_rows}
