"""Begins and ends a run: options, run folder, plan, metadata, report."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, StoreError
from harness.plugin import devices, markers
from harness.plugin.run_options import from_config
from harness.plugin.selection import Selection, is_audit_case, selection_of
from harness.plugin.shards import shard_fields
from harness.plugin.state import SESSION, AuditSession, audit_session, reports_folder
from harness.runstore import metadata
from harness.runstore.layout import RunFolder, check_writable, new_run_id
from harness.runstore.records import PlannedCase


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read and check the options before anything heavy; a worker takes over what the controller found."""
    markers.register(config)
    try:
        config.stash[SESSION] = _worker_session(config) if hasattr(config, "workerinput") else _new_session(config)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def _new_session(config: pytest.Config) -> AuditSession:
    required = [devices.check_device(name, "--require-device") for name in _named(config, "require_device")]
    named = [devices.check_device(name, "--device") for name in _named(config, "device")]
    present = devices.present()
    chosen = tuple(dict.fromkeys(named or required or [devices.best(present)]))
    options = from_config(config, chosen)
    reports = reports_folder(config)
    return AuditSession(
        options=options,
        folder=RunFolder(reports / new_run_id()),
        worker="main",
        is_worker=False,
        present=present,
        required=frozenset(devices.kind_of(name) for name in required),
        problem=_problem(reports, explicit=bool(config.getoption("lm_audit_reports"))),
    )


def _named(config: pytest.Config, option: str) -> list[str]:
    return list(config.getoption(f"lm_audit_{option}") or [])


def _problem(reports: Path, *, explicit: bool) -> str | None:
    """Why ``reports`` cannot be used. Raised at once where the user named it, else kept for when it is needed."""
    try:
        check_writable(reports)
    except StoreError as error:
        if explicit:
            raise
        return str(error)
    return None


def _worker_session(config: pytest.Config) -> AuditSession:
    workerinput: dict[str, Any] = getattr(config, "workerinput")  # noqa: B009
    given = workerinput["lm_audit"]
    return AuditSession(
        options=from_config(config, tuple(given["devices"])),
        folder=RunFolder(Path(given["folder"])),
        worker=workerinput["workerid"],
        is_worker=True,
        present=frozenset(given["present"]),
        required=frozenset(given["required"]),
        problem=given["problem"],
        attempts=dict(given["attempts"]),
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which run it works for."""
    session = audit_session(node.config)
    session.worker = "controller"
    node.workerinput["lm_audit"] = {
        "folder": str(session.folder.path),
        "devices": list(session.options.devices),
        "present": sorted(session.present),
        "required": sorted(session.required),
        "problem": session.problem,
        "attempts": dict(session.attempts),
    }


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Put the plan on record: what was selected, so that a report can say what is missing."""
    audit = audit_session(session.config)
    audit.plan = tuple(_planned(item) for item in session.items if is_audit_case(item))
    if not audit.plan or session.config.getoption("collectonly", False):
        return
    if audit.problem and not audit.is_worker:
        raise pytest.UsageError(audit.problem)
    try:
        if not audit.is_worker:
            _start(session.config, audit)
        audit.ledger.write("plan", cases=[vars(case) for case in audit.plan], **shard_fields(session.config))
    except StoreError as error:
        raise pytest.UsageError(str(error)) from error


def _planned(item: pytest.Item) -> PlannedCase:
    selection = selection_of(item) or Selection()
    return PlannedCase(
        case_id=item.nodeid,
        audit=markers.audit_of(item),
        model=selection.model.name if selection.model else None,
        device=selection.device,
        control_role=selection.control or ("positive" if item.get_closest_marker("control") else None),
        pinned=selection.pinned,
        cost=selection.case.cost if selection.case else 1.0,
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """A worker has written its plan, if there are audit cases: now the controller begins the run."""
    audit = audit_session(node.config)
    if not audit.recorded and audit.folder.ledger.is_dir():
        _start(node.config, audit)


def _start(config: pytest.Config, audit: AuditSession) -> None:
    audit.folder.create()
    audit.extra["metadata"] = metadata.start(
        audit.folder,
        command=["pytest", *map(str, config.invocation_params.args)],
        root=config.rootpath,
        options=_options_record(config, audit),
    )
    audit.ledger.write("run_start", run=audit.folder.run_id, pid=os.getpid())


def _options_record(config: pytest.Config, audit: AuditSession) -> dict[str, Any]:
    options = audit.options
    return {
        "size": options.size,
        "seed": options.seed,
        "dtype": options.dtype,
        "devices": list(options.devices),
        "models": {model.name: model.spec for model in options.models},
        "data": dict(options.data),
        "workers": getattr(config.option, "numprocesses", None) or 0,
        "audit": {name: value for name, value in options.audit.items() if value is not None},
    }


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """End the run after every worker has gone: mark it finished and project the reports."""
    result = yield
    audit = session.config.stash.get(SESSION, None)
    if audit is not None and audit.recorded and not audit.is_worker:
        _finish(session, audit, int(exitstatus))
    return result


def _finish(session: pytest.Session, audit: AuditSession, exitstatus: int) -> None:
    try:
        audit.ledger.write("run_end", exitstatus=exitstatus, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)
        audit.ledger.sync()
        metadata.finish(audit.folder, exitstatus)
    except StoreError as error:
        audit.extra["trouble"] = str(error)
    _project(audit)


def _project(audit: AuditSession) -> None:
    """Write the reports; a failure there is told and costs no data, since the ledger is the truth."""
    try:
        from harness.report import write_reports  # type: ignore[attr-defined,unused-ignore]

        write_reports(audit.folder.path)
    except Exception as error:
        audit.extra["trouble"] = (
            f"the report could not be written ({type(error).__name__}: {error}); the evidence is safe under "
            f"{audit.folder.path}, write it again with: lm-audit report {audit.folder.run_id}"
        )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say where the report is."""
    audit = config.stash.get(SESSION, None)
    if audit is None or audit.is_worker or not audit.recorded:
        return
    if trouble := audit.extra.get("trouble"):
        terminalreporter.write_line(trouble, red=True)
    index = audit.folder.path / "index.html"
    terminalreporter.write_line(f"report: {index if index.exists() else audit.folder.path}")
