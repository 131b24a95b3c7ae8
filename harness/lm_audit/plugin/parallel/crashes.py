"""The controller writes the end of a case whose worker died, since nobody else can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lm_audit.plugin.cluster.options import on_ray
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.plugin.session.case_timeout import CAUSE, told, traces_of
from lm_audit.plugin.session.left_behind import end_left_by
from lm_audit.runstore import reader
from lm_audit.runstore.layout import RunFolder
from lm_audit.shared.visible import visible


class CrashRecorder:
    """Watches the controller's reports for what xdist says of dead workers, and the scheduler of cases given up."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._called: dict[str, bool] = {}
        """The cases that have told how they went, and whether they broke."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Put a crash on record; a case that was never given to a worker ended with an error."""
        if report.when == "call" or (report.when in ("setup", "teardown") and not report.passed):
            self._called[report.nodeid] = report.failed
        unrun = getattr(report, "lm_audit_unrun", None)
        crashed = report.when not in ("setup", "call", "teardown")
        audit = audit_session(self._config)
        if not (unrun or crashed) or report.nodeid not in planned_ids(self._config):
            return
        if crashed and self._finished(report, audit):
            return
        hung = None if unrun else traces_of(audit, _worker(report))
        limit = self._config.getoption("lm_audit_case_timeout")
        message = str(unrun or report.longrepr)
        if hung and limit is not None:
            left = end_left_by(_run_of(report), report.nodeid)
            also = f"; ended what it had started: {', '.join(left)}" if left else ""
            message = f"{told(limit)}; {message}{also}\n{hung}"
            report.longrepr = message
        record_end(audit, report.nodeid, _worker(report), "error" if unrun else "crashed", message, hung=bool(hung))

    def _finished(self, report: pytest.TestReport, audit: AuditSession) -> bool:
        """Whether the worker died after it had recorded the end of the case: then the case is what it recorded.

        What xdist reports as a crash becomes what is missing of the case's own reports.
        """
        end = recorded_end(audit, _worker(report), report.nodeid)
        if end is None:
            return False
        broke = end.get("outcome") in ("failed", "error")
        skipped = end.get("outcome") == "skipped"
        message = visible(end.get("message", ""))
        if report.nodeid in self._called:  # It told how the case went; only the end of its teardown is missing.
            broke = broke and not self._called[report.nodeid]
            report.when, report.outcome = "teardown", "failed" if broke else "passed"
            report.longrepr = message if broke else None
        else:
            report.when = "call"
            report.outcome = "failed" if broke else "skipped" if skipped else "passed"
            where = (report.location[0], 0, f"Skipped: {message}")
            report.longrepr = where if skipped else message if broke else None
        return True


def record_end(audit: AuditSession, case: str, worker: str, outcome: str, message: str, *, hung: bool = False) -> None:
    """Write the end of the attempt that a dead worker left open, or of a case that no worker was given."""
    audit.ledger.write(
        "case_end",
        case_id=case,
        attempt=0,
        outcome=outcome,
        duration_s=None,
        message=message,
        **({"cause": CAUSE} if hung else {}),
        by="controller",
        worker=worker,
    )
    audit.ledger.sync()


def recorded_end(audit: AuditSession, worker: str, case_id: str) -> Mapping[str, Any] | None:
    """The end that ``worker`` recorded of its last attempt at a case in this session, None where it recorded none."""
    marks = [
        line
        for line in reader.read_lines(RunFolder(audit.folder.path))[0]
        if line.kind in ("case_start", "case_end")
        and line.session == audit.number
        and line.worker.rpartition("-")[0] == worker
        and line.record.get("case_id") == case_id
    ]
    last = max(marks, key=lambda line: line.order, default=None)
    return last.record if last is not None and last.kind == "case_end" else None


def planned_ids(config: pytest.Config) -> frozenset[str]:
    """The audit cases of the run; the controller of workers reads them from what its first worker wrote."""
    audit = audit_session(config)
    known = audit.extra.get("planned_ids")
    if known is None:
        known = reader.planned_ids(RunFolder(audit.folder.path))
        if known:
            audit.extra["planned_ids"] = known
    return frozenset(known)


def _worker(report: object) -> str:
    node = getattr(report, "node", None)
    return str(node.gateway.id) if node is not None else ""


def _run_of(report: object) -> str:
    """What xdist calls this run."""
    return str(getattr(getattr(report, "node", None), "workerinput", {}).get("testrunuid", ""))


def pytest_configure(config: pytest.Config) -> None:
    """Only a controller of workers sees crashes."""
    if not hasattr(config, "workerinput") and (config.pluginmanager.hasplugin("xdist") or on_ray(config)):
        config.pluginmanager.register(CrashRecorder(config), "lm-audit-crashes")
