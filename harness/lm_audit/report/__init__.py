"""Reports: every projection of a run store, for people, programs and CI. Knows nothing of any one audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.report.writing.of_evidence import report
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = ["report", "write_reports"]


def write_reports(run_folder: str | Path) -> Path:
    """The path of the page that was written for the run, with all tables and machine-readable files beside it.

    Writes index.html, metrics.csv, metrics.parquet, items.csv, items.parquet, evidence.jsonl and junit.xml from the
    run store alone. Raises ``StoreError`` where the folder is no run or cannot be written.
    """
    from lm_audit.report.writing.of_run import write_all

    return write_all(Path(run_folder).resolve()).page
