"""One JSON line a case: everything measured, with its verdicts, for programs that read neither ledger nor HTML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import case_state
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.records import Attempt, CaseRecord, Run
from lm_audit.shared.visible import visible


def evidence_record(run: Run, case: CaseRecord, *, void: bool) -> dict[str, Any]:
    """The case as plain JSON; item rows and figures are named, not repeated."""
    last = case.last
    record = {
        "run_id": run.run_id,
        "case_id": case.case_id,
        "audit": case.audit,
        "model": case.model,
        "device": case.device,
        "fingerprint": case.fingerprint,
        "model_details": dict(case.model_details),
        "state": case_state(case, void=void).name,
        **_attempt(last),
        "metrics": {name: estimate.to_json() for name, estimate in last.metrics.items()},
        "headline": last.headline,
        "verdicts": [vars(verdict) for verdict in case.verdicts],
        "control": None if last.control is None else vars(last.control),
        "parameters": dict(last.parameters),
        "notes": list(last.notes),
        "figures": [figure.name for figure in last.figures],
        "artifacts": [{"path": visible(file.path), "sha256": file.sha256} for file in last.artifacts],
        "row_files": [visible(name) for name in last.row_files],
        "n_rows": last.n_rows,
        "earlier": [_attempt(attempt) for attempt in case.earlier],
    }
    made: dict[str, Any] = plain(record, case.case_id)
    return made


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "outcome": attempt.outcome,
        "worker": attempt.worker,
        "duration_s": attempt.duration_s,
        "message": attempt.message,
    }


def write_evidence(run: Run, path: Path) -> None:
    """Write :func:`evidence_record` of every case."""
    voids = Voids(run)
    records = (evidence_record(run, case, void=case in voids) for case in run.cases)
    path.write_text("".join(json.dumps(record, allow_nan=False) + "\n" for record in records), encoding="utf-8")
