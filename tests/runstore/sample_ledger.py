"""A small run written with the ledger's own writer."""

from __future__ import annotations

from pathlib import Path

from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger

CASE = "evals/test_toy.py::test_x[tiny@cpu-a]"


def new_run(tmp_path: Path) -> RunFolder:
    """An empty run folder."""
    folder = RunFolder(tmp_path / "reports" / "20260101-000000-abcd")
    folder.create()
    return folder


def begin(folder: RunFolder, ledger: Ledger, case_id: str = CASE, number: int = 1, **fields: object) -> AttemptWriter:
    """An attempt that has started."""
    writer = AttemptWriter(folder, ledger, case_id, number)
    head = {"audit": "bias", "model": "tiny", "device": "cpu", "fingerprint": "f", "control": None}
    writer.start(**(head | fields))
    return writer
