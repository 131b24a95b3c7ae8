"""A report of evidence that was made without pytest: in a notebook or a script."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from lm_audit.errors import StoreError, UsageError
from lm_audit.evidence import Evidence
from lm_audit.findings import control_finding
from lm_audit.gates.checks import refuse_contradictions, refuse_out_of_range
from lm_audit.gates.gate import Gate, judge_case
from lm_audit.report import write_reports
from lm_audit.runstore import metadata
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.shared.names import unreadable
from lm_audit.sources.recording import record_measured

_PLAIN = re.compile(r"[^\w.-]+")
_UNREADABLE = re.compile(r"[\[\]]|::")


def report(
    evidences: Evidence | Iterable[Evidence] | Mapping[str, Evidence],
    path: str | Path,
    *,
    model: str = "model",
    gates: Iterable[Gate] = (),
) -> Path:
    """Write a run store at ``path`` and all reports of it; the path of ``index.html``.

    ``evidences`` may be one, several, or a mapping from the name of a case; ``model`` is what the page calls the model.
    Raises ``UsageError`` where there is no evidence or two cases have one name, ``GateError`` for gates that cannot be
    meant (:mod:`lm_audit.gates.checks`), ``StoreError`` where ``path`` holds a run already or cannot be written.
    """
    named = _named(evidences)
    fault = unreadable(model)
    if fault is not None or _UNREADABLE.search(model):
        why = fault or "cannot be read in a case id; name the model without brackets and colons"
        raise UsageError(f"model={model!r:.60} {why}")
    limits = tuple(gates)
    for gate in limits:
        refuse_out_of_range(gate, f"gate on {gate.metric}")
    refuse_contradictions(limits, "of report(gates=...)")
    try:
        folder = RunFolder(Path(path).resolve())
        taken = folder.ledger.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with NUL, a loop of links
        raise StoreError(f"{str(path)!r:.200} is no path that a folder can have: {error}") from error
    if folder.path.exists() and not folder.path.is_dir():
        raise StoreError(f"{folder.path} is a file; a report is a folder: name another one")
    if taken:
        raise StoreError(f"{folder.path} holds a run already; name another folder")
    folder.create()
    metadata.start(folder, command=[Path(sys.argv[0]).name or "python"], root=Path.cwd(), options={})
    ledger = Ledger(folder.ledger, "main", run=folder.run_id)
    ledger.write("run_start", run=folder.run_id)
    ledger.write("plan", cases=[_plan(name, evidence, model) for name, evidence in named.items()])
    for name, evidence in named.items():
        _write(folder, ledger, name, evidence, model, limits)
    ledger.write("run_end", exitstatus=0, interrupted=False)
    ledger.close()
    return write_reports(folder.path)


def _named(evidences: Evidence | Iterable[Evidence] | Mapping[str, Evidence]) -> dict[str, Evidence]:
    if isinstance(evidences, Evidence):
        evidences = [evidences]
    if isinstance(evidences, Mapping):
        pairs = [(str(name), evidence) for name, evidence in evidences.items()]
    else:
        pairs = [(f"{evidence.audit}_{at}", evidence) for at, evidence in enumerate(evidences, 1)]
    named = {_PLAIN.sub("_", name).strip("_") or "case": evidence for name, evidence in pairs}
    if not pairs:
        raise UsageError("a report needs at least one evidence")
    if len(named) < len(pairs):
        raise UsageError(f"two cases of the report have one name: {', '.join(name for name, _ in pairs)}")
    for name, evidence in pairs:
        if not isinstance(evidence, Evidence):
            raise UsageError(f"{name} is no Evidence but {type(evidence).__name__}")
    return named


def _case_id(name: str, model: str) -> str:
    return f"notebook::test_{name}[{model}]"


def _plan(name: str, evidence: Evidence, model: str) -> dict[str, str | None]:
    role = evidence.control.role if evidence.control else None
    return {"case_id": _case_id(name, model), "audit": evidence.audit, "model": model, "control_role": role}


def _write(
    folder: RunFolder, ledger: Ledger, name: str, evidence: Evidence, model: str, gates: tuple[Gate, ...]
) -> None:
    case_id = _case_id(name, model)
    attempt = AttemptWriter(folder, ledger, case_id, 1)
    control = evidence.control
    attempt.start(audit=evidence.audit, model=model, control=control.role if control else None)
    metrics = record_measured(evidence, attempt)
    if control is not None:
        attempt.control(control)
        attempt.finding(control_finding(control))
    verdicts = judge_case(gates, metrics, case_id, model, control=control is not None)
    for verdict in verdicts:
        attempt.verdict(verdict)
    failed = (control is not None and not control.passed) or any(verdict.word == "missed" for verdict in verdicts)
    cause = "control" if control is not None else "gate"
    attempt.end("failed" if failed else "passed", 0.0, cause=cause if failed else None)
