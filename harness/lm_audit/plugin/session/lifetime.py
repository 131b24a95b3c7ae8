"""Begins and ends a run: plan, metadata, report."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from lm_audit.errors import StoreError, UsageError
from lm_audit.plugin.audit_cases import markers
from lm_audit.plugin.audit_cases.selection import Selection, is_audit_case, on_toy, selection_of
from lm_audit.plugin.parallel.shard_option import shard_fields
from lm_audit.plugin.parallel.threads import worker_threads
from lm_audit.plugin.parallel.workers import REFUSED
from lm_audit.plugin.record.audit_session import SESSION, AuditSession, audit_session
from lm_audit.plugin.record.options_record import options_record
from lm_audit.plugin.session.from_options import hold_run
from lm_audit.runstore import metadata
from lm_audit.runstore.records import DamagedLine, PlannedCase
from lm_audit.runstore.soundness.belonging import ledger_sizes
from lm_audit.runstore.soundness.beside import damaged_files, told_damage
from lm_audit.shared.visible import visible


def pytest_lm_audit_planned(session: pytest.Session) -> None:
    """Put the plan on record: what was selected, so that a report can say what is missing.

    A controller of workers has no plan of its own, but begins the run.
    """
    audit = audit_session(session.config)
    controls = session.config.pluginmanager.hasplugin("dsession")
    audit.plan = () if controls else tuple(_planned(item) for item in session.items if is_audit_case(item))
    try:
        if audit.problem:
            raise StoreError(audit.problem)
        if not audit.is_worker and not audit.planned:
            _start(session.config, audit)
        if not controls and not audit.planned:
            audit.ledger.write("plan", cases=[vars(case) for case in audit.plan], **shard_fields(session.config))
    except StoreError as error:
        # It would take a worker down, and its successors: each case tells it at its set-up. The first worker tells its
        # controller instead, which refuses the call as it would without workers.
        first = audit.is_worker and audit.worker == "gw0" and hasattr(session.config, "workeroutput")
        if first:
            session.config.workeroutput[REFUSED] = str(error)  # type: ignore[attr-defined]  # set by xdist
        if first or not audit.is_worker:
            audit.folder.remove_if_empty()
            raise pytest.UsageError(str(error)) from error


def _planned(item: pytest.Item) -> PlannedCase:
    selection = selection_of(item) or Selection()
    return PlannedCase(
        case_id=item.nodeid,
        audit=markers.audit_of(item),
        model=selection.model.name if selection.model else None,
        device=selection.device,
        control_role=markers.control_role(item, selection.control),
        pinned=selection.pinned,
        cost=selection.case.cost if selection.case else 1.0,
        toy=on_toy(selection),
    )


def _start(config: pytest.Config, audit: AuditSession) -> None:
    audit.folder.create()
    try:
        hold_run(config, audit)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    audit.extra["begun"] = metadata.start(
        audit.folder,
        command=["pytest", *map(str, config.invocation_params.args)],
        root=config.rootpath,
        options=_options_record(config, audit),
        threads=worker_threads(config),
    )
    audit.ledger.write("run_start", run=audit.folder.run_id, pid=os.getpid(), resumed=audit.earlier is not None)


def _options_record(config: pytest.Config, audit: AuditSession) -> dict[str, Any]:
    return {
        **options_record(audit.options),
        **_servers(audit),
        "shard": config.getoption("lm_audit_shard"),
        "workers": getattr(config.option, "numprocesses", None) or 0,
        "ray": config.getoption("lm_audit_ray"),
        "gates": config.getoption("lm_audit_gates"),
        "report_only": audit.report_only,
        "undecided": "fail" if audit.undecided_fails else "pass",
        "tags": list(config.getoption("lm_audit_tag", None) or ()),
    }


def _servers(audit: AuditSession) -> dict[str, Any]:
    """How servers were talked to and what they offer; nothing where the models are on this machine."""
    if not audit.facts:
        return {}
    options = audit.options.endpoint
    return {
        "endpoint": {
            "concurrency": options.concurrency,
            "request_timeout": options.timeout_s,
            "max_tokens_spent": options.budget,
            "allow_insecure": options.allow_insecure,
            "tokenizers": dict(options.tokenizers),
            "reused_answers": [folder.parent.name for folder in audit.reused],
        },
        "servers": {name: facts.to_plain() for name, facts in audit.facts.items()},
    }


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
    """End the run after the workers have gone, before the terminal's summary: mark it and project the reports.

    Also where another plugin breaks at its end (``--junitxml`` on a full disk).
    """
    try:
        return (yield)
    finally:
        _end(session, exitstatus)


def _end(session: pytest.Session, exitstatus: int) -> None:
    audit = session.config.stash.get(SESSION, None)
    if audit is not None and audit.recorded:
        if not audit.is_worker:
            _finish(session, audit)
            terminal = session.config.pluginmanager.get_plugin("terminalreporter")
            # pytest writes no summary for an exit code that is not its own, such as that of SIGTERM.
            if terminal is not None and int(exitstatus) not in set(pytest.ExitCode):
                terminal.ensure_newline()
                _tell(terminal, audit, session.config)
        with contextlib.suppress(StoreError):  # What a case recorded was on the disk when it ended.
            audit.ledger.close()


def _finish(session: pytest.Session, audit: AuditSession) -> None:
    exitstatus = int(session.exitstatus)
    stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    try:
        audit.ledger.write("run_end", exitstatus=exitstatus, interrupted=stopped, ledgers=ledger_sizes(audit.folder))
        audit.ledger.sync()
    except (StoreError, OSError) as error:  # the second of a folder that cannot be listed
        audit.extra |= {"trouble": str(error), "lost": True}
        if session.exitstatus == pytest.ExitCode.OK:  # What was measured is not on record, or not all of it.
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    try:
        metadata.finish(audit.folder, exitstatus, audit.extra.get("begun"))
    except StoreError as error:
        audit.extra.setdefault("trouble", str(error))
    if not stopped and not any(audit.folder.answers.glob("case-*")):
        shutil.rmtree(audit.folder.answers, ignore_errors=True)
    if not _project(audit) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def close_run(audit: AuditSession, exitstatus: int) -> None:
    """Mark the run as broken off with ``exitstatus`` and write its reports, from wherever that is known."""
    audit.ledger.write("run_end", exitstatus=exitstatus, interrupted=True, ledgers=ledger_sizes(audit.folder))
    audit.ledger.sync()
    metadata.finish(audit.folder, exitstatus, audit.extra.get("begun"))
    _project(audit)


def _project(audit: AuditSession) -> bool:
    """Write the reports; a failure there is told and costs no data, since the ledger is the truth.

    Returns False where whoever called is left without what they called for: the disk refused the reports, or what
    cases had recorded is no longer what they wrote.
    """
    try:
        from lm_audit.report.writing.of_run import write_all

        damaged = write_all(audit.folder.path).damaged
    except Exception as error:
        told = [audit.extra["trouble"]] if "trouble" in audit.extra else []
        told.append(f"the report could not be written ({type(error).__name__}: {error})")
        if not audit.extra.get("lost"):
            folder = audit.folder.path
            told.append(f"the evidence is safe under {folder}, try again with: lm-audit report {folder}")
        audit.extra["trouble"] = "; ".join(told)
        return not isinstance(error, StoreError | OSError)
    return not _damaged_meanwhile(audit, damaged)


def _damaged_meanwhile(audit: AuditSession, damaged: Sequence[DamagedLine]) -> bool:
    """Whether records were damaged since this call began, and not before; if so, that is told."""
    known: set[str] = set()
    if damaged and audit.earlier is not None:
        run = audit.earlier.run
        known = {visible(one.place) for one in (*run.damaged, *damaged_files(run))}
    new = [one for one in damaged if visible(one.place) not in known]
    if new:
        again = f"--resume {audit.folder.run_id} runs again what it cost"
        audit.extra.setdefault("trouble", visible(f"while the run wrote it: {told_damage(new)}; {again}"))
    return bool(new)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what came out, in a table, and where the report is."""
    audit = config.stash.get(SESSION, None)
    if audit is not None and audit.recorded and not audit.is_worker:
        _tell(terminalreporter, audit, config)


def _tell(terminalreporter: Any, audit: AuditSession, config: pytest.Config) -> None:
    for line in _summary(audit, config):
        terminalreporter.write_line(line)
    if trouble := audit.extra.get("trouble"):
        terminalreporter.write_line(trouble, red=True)
    index = audit.folder.path / "index.html"
    terminalreporter.write_line(visible(f"report: {index if index.exists() else audit.folder.path}"))


def _summary(audit: AuditSession, config: pytest.Config) -> list[str]:
    writer = config.get_terminal_writer()
    try:
        from lm_audit.report.in_pytest.terminal import summary_lines
        from lm_audit.runstore.run import read_run

        return list(
            summary_lines(read_run(audit.folder.path, shown=True), width=writer.fullwidth, color=writer.hasmarkup)
        )
    except Exception as error:
        return [f"no summary: {type(error).__name__}: {error}"]
