"""The run store: ledger writer, reader and fold. Knows nothing of pytest, models or any one audit."""

from __future__ import annotations

from harness.runstore.reader import read_rows
from harness.runstore.records import (
    Artifact,
    Attempt,
    CaseRecord,
    DamagedLine,
    PlannedCase,
    Run,
    Verdict,
)
from harness.runstore.run import read_run

__all__ = [
    "Artifact",
    "Attempt",
    "CaseRecord",
    "DamagedLine",
    "PlannedCase",
    "Run",
    "Verdict",
    "read_rows",
    "read_run",
]
