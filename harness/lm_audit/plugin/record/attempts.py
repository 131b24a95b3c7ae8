"""Writes the start and the end of every attempt of an audit case into the ledger."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import BudgetError, HarnessError, ServerError, StoreError
from lm_audit.gates.gate import worst
from lm_audit.plugin.audit_cases.markers import audit_of, control_role
from lm_audit.plugin.audit_cases.selection import Selection, is_audit_case, on_toy, selection_of
from lm_audit.plugin.compat import verbosity
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.plugin.record.fingerprints import case_fingerprint, item_code
from lm_audit.plugin.record.opened_files import newly_read
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.records import Verdict
from lm_audit.runstore.soundness.beside import CUT_SHORT
from lm_audit.shared.answers import answers_in
from lm_audit.shared.textfiles.full_disk import full_disk
from lm_audit.shared.visible import shown, visible

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.stats.estimate import Estimate

AGAIN = CUT_SHORT
"""Causes of failures after which ``--resume`` runs a case again."""
METRICS_PROPERTY = "lm_audit_metrics"
VERDICTS_PROPERTY = "lm_audit_verdicts"
FINDINGS_PROPERTY = "lm_audit_findings"


@dataclass
class Running:
    """The attempt that an item is in."""

    writer: AttemptWriter
    recorder: Recorder
    began: float
    outcome: str = "passed"
    message: str = ""
    cause: str | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    answers: ExitStack = field(default_factory=ExitStack)
    """Open while what models answer is kept."""
    kept: Path | None = None
    """Where: other code or options are another file."""

    def loaded(self, model: LanguageModel, selection: Selection) -> None:
        """Record what the loaded model is."""
        spec = selection.model.spec if selection.model else None
        known: dict[str, object] = {"fingerprint": model.fingerprint, "dtype": str(model.dtype)}
        if model.quantised_by is not None:
            known["quantised"] = f"by {model.quantised_by}"
        if model.told:
            known["told"] = list(model.told)
        if model.places:
            known["parts"] = ", ".join(f"{many} on {device}" for device, many in model.places.items())
        self.writer.model(spec=spec, device=str(model.device), **known)


_RUNNING: pytest.StashKey[Running] = pytest.StashKey()
_UNRECORDED: pytest.StashKey[StoreError] = pytest.StashKey()
_LONGEST_PARAM = 400
_OF_THE_TEST = (AssertionError, pytest.fail.Exception, pytest.skip.Exception, pytest.xfail.Exception)
"""What a test raises to say something; anything else broke it."""


def current_recorder(item: pytest.Item) -> Running:
    """The running attempt of an item; raises the ``StoreError`` that kept it from being recorded."""
    if _UNRECORDED in item.stash:
        raise item.stash[_UNRECORDED]
    return item.stash[_RUNNING]


def running_attempt(item: pytest.Item) -> Running | None:
    """The running attempt of an item, None for a test that is no audit case."""
    return item.stash.get(_RUNNING, None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Begin an attempt before anything else happens, so that a crash in set-up is on record."""
    if not is_audit_case(item):
        return (yield)
    try:
        _begin(item, audit_session(item.config))
    except StoreError as error:
        item.stash[_UNRECORDED] = error
    # Other plugins' set-up must run even so, or their teardown breaks.
    result = yield
    if _UNRECORDED in item.stash:
        raise item.stash[_UNRECORDED]
    return result


def _begin(item: pytest.Item, session: AuditSession) -> None:
    selection = selection_of(item) or Selection()
    fingerprint = session.given_fingerprints.get(item.nodeid) or case_fingerprint(item, session.options)
    writer = AttemptWriter(session.folder, session.ledger, item.nodeid, session.next_attempt(item.nodeid))
    writer.start(
        audit=audit_of(item),
        model=selection.model.name if selection.model else None,
        spec=selection.model.spec if selection.model else None,
        device=selection.device,
        control=control_role(item, selection.control),
        fingerprint=fingerprint,
        code_version=item_code(item),
        markers=sorted({mark.name for mark in item.iter_markers()}),
        params=describe(selection),
        **({"toy": True} if on_toy(selection) else {}),
    )
    running = item.stash[_RUNNING] = Running(writer, Recorder(writer), time.perf_counter())
    running.kept = session.folder.answers / f"case-{fingerprint}.jsonl"
    running.answers.enter_context(answers_in(running.kept))
    item.user_properties[:] = [entry for entry in item.user_properties if not entry[0].startswith("lm_audit_")]


def describe(selection: Selection) -> dict[str, Any]:
    """The case's parameters as far as they have a plain form, else their ``repr``."""
    return {name: _plain_or_repr(value) for name, value in (selection.case.params if selection.case else {}).items()}


def _plain_or_repr(value: object) -> Any:
    try:
        found = plain(value)
    except StoreError:
        found = repr(value)
    text = found if isinstance(found, str) else repr(found)
    return found if len(text) <= _LONGEST_PARAM else f"{text[:_LONGEST_PARAM]}…"


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """The test itself. A process that it forked, and that comes back from it, ends here: it would write the rest of the
    run a second time.
    """
    own = os.getpid()
    try:
        return (yield)
    finally:
        if os.getpid() != own:
            told = f"{item.nodeid}: a process that it forked came back from the test, and is ended here"
            os.write(2, visible(f"\n{told}\n").encode())
            os._exit(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how each phase went; close the attempt after the last."""
    running = running_attempt(item)
    if running is not None and call.when == "call":
        _publish(item, running)
        _tell_findings(item, running)
    if running is not None and call.excinfo is not None:
        _make_error_visible(call.excinfo.value)
    report = yield
    _shorten(report, call, item.config)
    if running is None:
        return report
    if call.when == "call":
        vars(report)["lm_audit_verdict"] = worst(running.verdicts)
    if call.excinfo is not None:
        running.cause = _cut_short_by(call.excinfo.value) or running.cause
    if call.when == "call" and call.excinfo is not None and not isinstance(call.excinfo.value, _OF_THE_TEST):
        running.cause = running.cause or "exception"
    _note(running, report)
    _make_visible(report)
    if call.when == "teardown":
        running.answers.close()
        if running.kept is not None and running.outcome != "error" and running.cause not in AGAIN:
            with suppress(OSError):  # Of what lies there nothing is asked again; what became of the folder _end tells.
                running.kept.unlink()
        _tell_read(item, running)
        _end(running, report)
        del item.stash[_RUNNING]
    return report


def _tell_read(item: pytest.Item, running: Running) -> None:
    """Record what the case's own code has read; a disk that refuses is told by the end of the attempt."""
    with suppress(StoreError):
        if files := newly_read(item, audit_session(item.config)):
            running.writer.read(files)


def _end(running: Running, report: pytest.TestReport) -> None:
    """Close the attempt; where the disk refuses, the case is in error and the run goes on."""
    try:
        running.writer.end(running.outcome, time.perf_counter() - running.began, running.message, cause=running.cause)
    except StoreError as error:
        report.outcome, report.longrepr = "failed", f"StoreError: {error}"


def _publish(item: pytest.Item, running: Running) -> None:
    """Give the metrics to JUnit and other plugins, as text: xdist cannot carry more."""
    item.user_properties += properties(running.recorder.metrics, running.verdicts)


def _tell_findings(item: pytest.Item, running: Running) -> None:
    """Under ``-v``: the case's claims, for the terminal that may be another process; not yet corrected for others."""
    claims = [one for one in running.recorder.findings.values() if one.kind == "claim"]
    if claims and verbosity(item.config) > 0:
        told = [[one.verdict, one.statement] for one in claims]
        item.user_properties.append((FINDINGS_PROPERTY, json.dumps(told)))


def properties(metrics: Mapping[str, Estimate], verdicts: Iterable[Verdict]) -> list[tuple[str, object]]:
    """What JUnit and other plugins are told of a case, each as a JSON text."""
    found: list[tuple[str, object]] = []
    if metrics:
        found.append((METRICS_PROPERTY, json.dumps({name: metrics[name].to_json() for name in metrics})))
    if told := [vars(verdict) for verdict in verdicts]:
        found.append((VERDICTS_PROPERTY, json.dumps(told)))
    return found


def _shorten(report: pytest.TestReport, call: pytest.CallInfo[None], config: pytest.Config) -> None:
    """An error that the harness raises on purpose is its message: a traceback would bury it.

    So is what a library in Rust ends in, whose traceback shows nothing of it: a tokenizer's rules that never end on a
    text, a file that it cannot read.
    """
    error = call.excinfo.value if call.excinfo is not None else None
    if not report.failed or config.getoption("fulltrace", False):
        return
    if isinstance(error, HarnessError):
        report.longrepr = f"{type(error).__name__}: {error}"
    elif type(error).__module__ == "pyo3_runtime":
        report.longrepr = f"{type(error).__name__} of a library in Rust (tokenizers, safetensors): {error!s:.2000}"


def _make_visible(report: pytest.TestReport) -> None:
    """Reasons quote what models and data sets say; a terminal obeys what is not written out."""
    told: Any = report.longrepr
    if isinstance(told, str | tuple):
        report.longrepr = shown(told)


def _cut_short_by(error: BaseException) -> str | None:
    """The cause where the error says nothing of the model: a disk without room, tokens that are spent, a server.

    A disk may have refused whatever was to be written on the way: a converted model, a stage, what cases share.
    """
    if isinstance(error, BudgetError | ServerError):
        return "budget" if isinstance(error, BudgetError) else "server"
    refused = any(isinstance(one, Exception) and full_disk(one) for one in _led_to(error))
    return "store" if refused or isinstance(error, StoreError) else None


def _led_to(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _make_error_visible(last: BaseException) -> None:
    """The same of the errors themselves, and of those that led to them: Allure and workers take their texts from there,
    and end the whole run at half a surrogate pair.
    """
    for error in _led_to(last):
        error.args = shown(error.args)
        for name in ("msg", "reason"):
            if isinstance(text := vars(error).get(name), str):
                setattr(error, name, shown(text))


def _note(running: Running, report: pytest.TestReport) -> None:
    if report.passed or running.outcome in ("failed", "error"):
        return
    if report.skipped and hasattr(report, "wasxfail"):
        running.cause, running.message = "xfail", f"expected failure: {report.wasxfail}"
    elif report.skipped:
        running.outcome, running.message = "skipped", _reason(report)
    elif report.failed:
        running.outcome = "failed" if report.when == "call" else "error"
        running.cause = running.cause or "test"
        running.message = _reason(report)


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else longrepr)
