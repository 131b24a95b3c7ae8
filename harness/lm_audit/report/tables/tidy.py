"""One tidy table of every metric of a run."""

from __future__ import annotations

from csv import DictWriter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import case_state, worst_word
from lm_audit.report.tables.arrow import BUILDERS
from lm_audit.report.wording.names import case_label
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.shared.spreadsheet import as_text

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "run_id", "audit", "model", "device", "case_id", "case", "metric", "headline", "value", "low", "high", "n",
    "confidence", "chance", "unit", "better", "method", "note", "control", "outcome", "state", "verdict", "limit",
)  # fmt: skip


_TYPES = {
    "headline": "bool", "n": "int64", **dict.fromkeys(("value", "low", "high", "confidence", "chance"), "double"),
}  # fmt: skip
"""What is no text, by Arrow's names."""


def metrics_table(run: Run) -> pd.DataFrame:
    """A row for every metric of every case's last attempt, with the columns of :data:`COLUMNS`."""
    import pandas as pd
    import pyarrow as pa

    table: pd.DataFrame = _arrow(metric_rows(run)).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return table


def metric_rows(run: Run) -> list[dict[str, Any]]:
    """The rows of :func:`metrics_table` as plain mappings; absent values are ``None``."""
    voids = Voids(run)
    return [row for case in run.cases for row in _rows(run, case, case in voids)]


def _arrow(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.table({name: BUILDERS[_TYPES.get(name, "string")]([row.get(name) for row in rows]) for name in COLUMNS})


def _rows(run: Run, case: CaseRecord, void: bool) -> list[dict[str, Any]]:
    headline = case.last.headline or next(iter(case.last.metrics), None)
    rows = []
    for name, estimate in case.last.metrics.items():
        verdicts = [verdict for verdict in case.verdicts if verdict.metric == name]
        rows.append(
            estimate.to_json()
            | {
                "run_id": run.run_id,
                "audit": case.audit,
                "model": case.model,
                "device": case.device,
                "case_id": case.case_id,
                "case": case_label(case),
                "metric": name,
                "headline": name == headline,
                "control": case.control_role or (case.last.control.role if case.last.control else None),
                "outcome": case.outcome,
                "state": case_state(case, void=void).name,
                "verdict": worst_word(verdicts),
                "limit": "; ".join(verdict.limit for verdict in verdicts) or None,
            }
        )
    return [{name: _sound(value) for name, value in row.items()} for row in rows]


def write_metrics(run: Run, *, csv: Path, parquet: Path) -> None:
    """Write :func:`metrics_table` as CSV (UTF-8, one header line) and Parquet."""
    import pyarrow.parquet as pq

    rows = metric_rows(run)
    with parquet.open("wb") as sink:  # A path that is not UTF-8 is none for Arrow.
        pq.write_table(_arrow(rows), sink)
    with csv.open("w", encoding="utf-8", newline="") as file:
        writer = DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: as_text(value) for name, value in row.items()} for row in rows)


def _sound(value: object) -> Any:
    # Lone surrogates are legal in JSON but not in UTF-8.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
