"""Reads the item rows of a run once, for the tables and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.report.page.packing import PackedRows, fit, pack_rows
from lm_audit.report.tables.items import case_rows, items_table
from lm_audit.runstore.records import DamagedLine, Run
from lm_audit.runstore.soundness.beside import damaged_artifacts

ROWS_BUDGET = 8_000_000
"""Characters of packed item rows on the page."""


@dataclass(frozen=True)
class Items:
    """The item rows of a run: a table for each case, what the page holds of them, by case id, and what is damaged."""

    tables: list[Any]
    packed: dict[str, PackedRows]
    damaged: tuple[DamagedLine, ...]


def collect_items(run: Run, *, budget: int = ROWS_BUDGET) -> Items:
    """Every case's rows; those of one case are in memory at a time."""
    tables: list[Any] = []
    packed: dict[str, PackedRows] = {}
    damaged: list[DamagedLine] = []
    cases = {case.case_id: case for case in run.cases if case.last.row_files}
    for case_id, case in cases.items():
        found = case_rows(run, case)
        damaged += found.damaged
        if found.rows:
            tables.append(items_table(case, found.rows))
            packed[case_id] = pack_rows(found.rows)
    for case in run.cases:
        damaged += damaged_artifacts(run.folder, case.last)

    def again(case_id: str) -> Sequence[dict[str, Any]]:
        return case_rows(run, cases[case_id]).rows

    return Items(tables, fit(packed, again, budget), tuple(damaged))
