"""The run store: ledger writer, reader and fold. Knows nothing of pytest, models or any one audit."""

from __future__ import annotations

from lm_audit.runstore.reader import read_rows
from lm_audit.runstore.records import (
    Artifact,
    Attempt,
    CaseRecord,
    DamagedLine,
    PlannedCase,
    Run,
    Verdict,
)
from lm_audit.runstore.run import read_run
from lm_audit.runstore.soundness.beside import damaged_files

__all__ = [
    "Artifact",
    "Attempt",
    "CaseRecord",
    "DamagedLine",
    "PlannedCase",
    "Run",
    "Verdict",
    "damaged_files",
    "read_rows",
    "read_run",
]
