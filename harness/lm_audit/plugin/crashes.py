"""The controller writes the end of a case whose worker died, since nobody else can."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.plugin.case_timeout import CAUSE, told, traces_of
from lm_audit.plugin.ray_options import on_ray
from lm_audit.plugin.state import AuditSession, audit_session
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import read_lines


class CrashRecorder:
    """Watches the controller's reports for what xdist says of dead workers, and the scheduler of cases given up."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Put a crash on record; a case that was never given to a worker ended with an error."""
        unrun = getattr(report, "lm_audit_unrun", None)
        crashed = report.when not in ("setup", "call", "teardown")
        audit = audit_session(self._config)
        if not (unrun or crashed) or report.nodeid not in planned_ids(self._config):
            return
        hung = None if unrun else traces_of(audit, _worker(report))
        limit = self._config.getoption("lm_audit_case_timeout")
        message = str(unrun or report.longrepr)
        if hung and limit is not None:
            message = f"{told(limit)}; {message}\n{hung}"
            report.longrepr = message
        record_end(audit, report.nodeid, _worker(report), "error" if unrun else "crashed", message, hung=bool(hung))


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


def planned_ids(config: pytest.Config) -> frozenset[str]:
    """The audit cases of the run; the controller of workers reads them from what its first worker wrote."""
    audit = audit_session(config)
    known = audit.extra.get("planned_ids")
    if known is None:
        lines = read_lines(RunFolder(audit.folder.path))[0] if audit.folder.ledger.is_dir() else []
        known = frozenset(case["case_id"] for line in lines if line.kind == "plan" for case in line.record["cases"])
        if known:
            audit.extra["planned_ids"] = known
    return frozenset(known)


def _worker(report: Any) -> str:
    node = getattr(report, "node", None)
    return str(node.gateway.id) if node is not None else ""


def pytest_configure(config: pytest.Config) -> None:
    """Only a controller of workers sees crashes."""
    if not hasattr(config, "workerinput") and (config.pluginmanager.hasplugin("xdist") or on_ray(config)):
        config.pluginmanager.register(CrashRecorder(config), "lm-audit-crashes")
