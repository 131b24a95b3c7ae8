"""Holds gates and controls against what a case recorded, at the end of its call."""

from __future__ import annotations

from collections.abc import Generator, Iterable

import pytest

from lm_audit.audits.metric_info import declared_names
from lm_audit.errors import StoreError, UsageError
from lm_audit.evidence import Control
from lm_audit.gates.gate import Gate, judge_case
from lm_audit.gates.reading import read_gates
from lm_audit.plugin.audit_cases.markers import AUDITS, audit_of, control_role
from lm_audit.plugin.audit_cases.selection import Selection, on_toy, selection_of
from lm_audit.plugin.options.audit_options import audit_names
from lm_audit.plugin.record.attempts import Running, running_attempt
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.runstore.records import Run, Verdict
from lm_audit.runstore.run import read_run
from lm_audit.shared.number_checks import suggestion


def load_gates(path: str | None) -> tuple[Gate, ...]:
    """The gates of ``--gates``; an audit whose name is misspelt is found before anything runs."""
    gates = read_gates(path) if path else ()
    known = {*AUDITS, *audit_names()}
    for gate in gates:
        audit = gate.metric.partition(".")[0]
        if audit not in known and (hint := suggestion(audit, known)):
            raise UsageError(f"gates file {path}, [{gate.metric}]: no audit is called {audit!r}{hint}")
    return gates


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """After the test function: judge, put the verdicts on record, and fail once with everything that was missed."""
    result = yield
    running = running_attempt(item)
    if running is not None:
        _conclude(item, running, audit_session(item.config))
    return result


def _conclude(item: pytest.Item, running: Running, session: AuditSession) -> None:
    running.recorder.check_headline()
    selection = selection_of(item)
    model = selection.model.name if selection and selection.model else None
    selection = selection or Selection()
    running.verdicts = judge_case(
        session.gates,
        running.recorder.metrics,
        item.nodeid,
        model,
        control=control_role(item, selection.control) is not None or running.recorder.is_control,
        toy=on_toy(selection),
    )
    for verdict in running.verdicts:
        running.writer.verdict(verdict)
    if running.recorder.failed_controls:
        running.cause = "control"
        pytest.fail(control_message(running.recorder.failed_controls, audit_of(item)), pytrace=False)
    # An expected failure must fail to be one, or strict xfail turns --report-only into an error.
    lenient = session.report_only and item.get_closest_marker("xfail") is None
    # A toy says nothing about the model that is asked for: its gates are told, and decide no exit code.
    lenient = lenient or on_toy(selection)
    message = failure(running.verdicts, report_only=lenient, undecided_fails=session.undecided_fails)
    if message:
        running.cause = "gate"
        pytest.fail(message, pytrace=False)


def failure(verdicts: Iterable[Verdict], *, report_only: bool, undecided_fails: bool) -> str | None:
    """The one line in which a case fails for its gates, None where it does not."""
    words = ("missed", "undecided") if undecided_fails else ("missed",)
    failing = [] if report_only else [verdict for verdict in verdicts if verdict.word in words]
    parts = [f"{verdict.metric} {verdict.limit} {verdict.word}: {verdict.reason}" for verdict in failing]
    return f"gate {'; '.join(parts)}" if parts else None


def control_message(controls: Iterable[Control], audit: str | None) -> str:
    """The line in which a case fails for its controls; one without the marker of an audit makes no number void."""
    parts = [f"{c.role} control failed: expected {c.expected}, observed {c.observed}" for c in controls]
    void = "the numbers of this audit are void" if audit else "it bears no audit's marker, so no number is void by it"
    return f"{'; '.join(parts)} ({void})"


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """A passed case that missed a gate (``--report-only``) or left it undecided has a letter and a count of its own."""
    if report.when != "call" or not report.passed:
        return None
    word = getattr(report, "lm_audit_verdict", None)
    if word == "missed":
        return "missed", "g", ("MISSED", {"yellow": True})
    if word == "undecided":
        return "undecided", "u", ("UNDECIDED", {"yellow": True})
    return None


def pytest_lm_audit_loop_end(session: pytest.Session, stopped: bool) -> None:
    """Once all cases ran: a gate that was held against nothing is an error, never a pass."""
    audit = audit_session(session.config)
    if stopped:
        return
    # A shard holds some of the cases: that none of them recorded a metric says nothing about its name.
    whole = not session.config.getoption("lm_audit_shard") and not session.config.getoption("collectonly")
    if audit.gates and audit.recorded and not audit.is_worker and whole:
        gates = session.config.getoption("lm_audit_gates")
        try:
            problems = unheld(audit.gates, read_run(audit.folder.path))
        except StoreError as error:  # The run's folder has gone, and nothing can be said of its gates.
            _report(session, str(gates), f"StoreError: {error}")
            return
        for name, problem in problems:
            _report(session, f"{gates}::[{name}]", problem)


def unheld(gates: Iterable[Gate], run: Run) -> list[tuple[str, str]]:
    """Gates that no case was held against though its audit ran, each with the reason; a typo in a name ends here.

    Gates of audits that were not selected are left out, and so are those for models that this run does not audit.
    """
    recorded: dict[str, list[tuple[str, str | None]]] = {}
    planted: set[str] = set()
    for case in run.cases:
        for metric in case.last.metrics:
            if case.is_control:
                planted.add(metric)
            else:
                recorded.setdefault(metric, []).append((case.case_id, case.model))
    audits = {case.audit for case in run.plan}
    found = ((gate.metric, _problem(gate, recorded, planted, audits, run)) for gate in gates)
    return [(metric, problem) for metric, problem in found if problem]


def _problem(
    gate: Gate,
    recorded: dict[str, list[tuple[str, str | None]]],
    planted: set[str],
    audits: set[str | None],
    run: Run,
) -> str | None:
    audit = gate.metric.partition(".")[0]
    if gate.metric not in recorded:
        if audit in {*AUDITS, *audit_names()} and audit not in audits:
            return None
        if gate.metric in planted:
            return f"gate on {gate.metric!r}: only controls recorded it, and a gate never judges a control"
        hint = suggestion(gate.metric, [*recorded, *declared_names(audit)])
        return f"gate on {gate.metric!r}: no case recorded a metric of that name{hint}"
    models = {case.model for case in run.plan}
    if gate.models is not None and not models.intersection(gate.models):
        return None
    if not any(gate.applies(case_id, model) for case_id, model in recorded[gate.metric]):
        such = recorded[gate.metric][0][0]
        unmatched = f"cases = {gate.cases!r} matches none of the cases that recorded it, such as {such}"
        return f"gate on {gate.metric!r}: {unmatched}"
    return None


def _report(session: pytest.Session, name: str, problem: str) -> None:
    """Report an error that belongs to no case, so that terminal, JUnit and exit code all show it."""
    report = pytest.TestReport(
        nodeid=name, location=(name, None, name), keywords={}, outcome="failed", longrepr=problem, when="setup"
    )
    session.config.hook.pytest_runtest_logreport(report=report)
