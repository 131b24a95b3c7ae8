"""``--resume RUN``: cases that ended stand as they are, the rest runs into the same run folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.gates.gate import Gate, judge_case, worst
from lm_audit.models.loading.identity.spec_identity import model_identity
from lm_audit.plugin import compat
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.options.audit_options import option_owners
from lm_audit.plugin.options.model_choice import ModelChoice, spelt
from lm_audit.plugin.options.naming import left_out
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.record.attempts import AGAIN, properties
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.plugin.record.earlier import Earlier
from lm_audit.plugin.record.fingerprints import case_fingerprint
from lm_audit.plugin.record.gating import failure
from lm_audit.plugin.record.options_record import options_record
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.reader import read_rows
from lm_audit.runstore.records import CaseRecord, Verdict
from lm_audit.runstore.soundness.beside import damaged_of
from lm_audit.shared.stated_options import CONTENT, Difference, differences

_ENDED = ("passed", "failed")
"""Outcomes that stand. A skipped case costs nothing to look at again; one that crashed or broke in set-up must run.

So must one that failed because its evidence could not be written (cause ``store``: the disk was full), or because its
time was up (``timeout``) or its tokens spent (``budget``), or because a server failed (``server``).
"""


def inherited(config: pytest.Config, options: Mapping[str, Any]) -> None:
    """Give options that this call leaves out the values that the run was started with."""
    models = [spelt(ModelChoice(name, spec)) for name, spec in options.get("models", {}).items()]
    data = [f"{name}={where}" for name, where in options.get("data", {}).items()]
    servers: Mapping[str, Any] = options.get("endpoint", {})
    known = {
        "model": models,
        "device": options.get("devices"),
        "size": options.get("size"),
        "limit": options.get("limit"),
        "seed": options.get("seed"),
        "dtype": options.get("dtype"),
        "device_map": options.get("device_map"),
        "batch_tokens": options.get("batch_tokens"),
        "packed_weights": options.get("packed_weights"),
        "chat": options.get("chat"),
        "chat_args": [f"{key}={json.dumps(value)}" for key, value in options.get("chat_args", {}).items()] or None,
        "thinking_tokens": options.get("thinking_tokens"),
        "data": data or None,
        "shard": options.get("shard"),
        "tokenizer": [f"{name}={spec}" for name, spec in servers.get("tokenizers", {}).items()] or None,
    }
    if servers.get("allow_insecure"):
        config.option.lm_audit_allow_insecure = True
    for name, value in known.items():
        if config.getoption(f"lm_audit_{name}") is None and value is not None:
            setattr(config.option, f"lm_audit_{name}", value)
    given = {entry.partition("=")[0] for entry in config.getoption("lm_audit_data") or ()}
    kept = [entry for entry in data if entry.partition("=")[0] not in given]
    if given and kept:  # Another set is added to those of the run; theirs stay.
        config.option.lm_audit_data = [*kept, *config.getoption("lm_audit_data")]
    for name, value in options.get("audit", {}).items():
        if left_out(getattr(config.option, f"lm_audit_x_{name}", 0)):
            setattr(config.option, f"lm_audit_x_{name}", value)
    if config.getoption("lm_audit_gates") is None and options.get("gates"):
        config.option.lm_audit_gates = options["gates"]
        config.option.lm_audit_undecided = config.getoption("lm_audit_undecided") or options.get("undecided")
        config.option.lm_audit_report_only |= bool(options.get("report_only"))


def check_same(earlier: Earlier, options: RunOptions) -> None:
    """``UsageError`` unless this call measures what the run measured: one run holds one measurement, stated once.

    What the run did not have yet may be added: a public set, the options of an audit of which it holds no case.
    """
    run_id, then = earlier.run.run_id, earlier.options
    before: Mapping[str, str] = then.get("models", {})
    damage = next((one.reason for one in earlier.run.damaged if one.file == "run.json"), None)
    if not before or damage:
        raise UsageError(
            f"--resume {run_id}: its run.json is absent or damaged and does not say what the run measures"
            f"{f' ({damage})' if damage else ''}; start a new run without --resume"
        )
    for model in options.models:
        if model.name not in before:
            ran = ", ".join(f"{name} ({spec})" for name, spec in before.items())
            raise UsageError(
                f"--resume {run_id}: that run audits {ran}, not {model.name} ({model.spec}); "
                f"name its model, leave --model out, or start a new run without --resume"
            )
        identity = then.get("identities", {}).get(model.name)
        if identity is not None and identity != model_identity(model.spec):
            raise UsageError(
                f"--resume {run_id}: {model.name} was {before[model.name]} [{identity}] in that run and is now "
                f"{model.spec} [{model_identity(model.spec)}]; a run holds one model by one name: start a new run"
            )
    now = plain({**options_record(options), "endpoint": {"tokenizers": dict(options.endpoint.tokenizers)}}, "options")
    named = {model.name for model in options.models}
    then = {**then, **{name: _of(named, then.get(name)) for name in ("models", "identities")}}
    then["endpoint"] = {"tokenizers": _of(named, (then.get("endpoint") or {}).get("tokenizers"))}
    for found in differences(then, now):
        if not _may_join(found, earlier.audits):
            raise UsageError(f"--resume {run_id}: {_told(found)}, or start a new run without --resume")


def _of(named: Collection[str], stated: object) -> dict[str, object]:
    """What is stated of the models that this call names: it may leave out some of the run's."""
    return {name: value for name, value in stated.items() if name in named} if isinstance(stated, Mapping) else {}


def _may_join(found: Difference, audits: Collection[str | None]) -> bool:
    flag = found.option.removeprefix(CONTENT).partition(" ")[0]
    owners = option_owners().get(flag.removeprefix("--").replace("-", "_"), frozenset())
    return found.is_new if flag == "--data" else bool(owners) and not owners & set(audits)


def _told(found: Difference) -> str:
    if found.option.startswith(CONTENT):
        named = found.option.removeprefix(CONTENT)
        return f"what {named} names is not what it was in that run (it changed, or is not there); put it back"
    was, now = found.as_given(found.ours), found.as_given(found.theirs)
    return f"that run has {was}, this call {now}; leave the option out"


def stands(item: pytest.Item, session: AuditSession) -> CaseRecord | None:
    """The record of a case that need not run again, None where it must."""
    if session.earlier is None or not is_audit_case(item):
        return None
    record: CaseRecord | None = session.earlier.cases.get(item.nodeid)
    if record is None or record.outcome not in _ENDED or record.last.cause in AGAIN:
        return None
    if record.fingerprint is None or record.last.incomplete or not _files_whole(record, session.folder.path):
        return None
    if (item.nodeid.partition("::")[0], record.last.session) in session.earlier.stale:
        return None
    return record if record.fingerprint == case_fingerprint(item, session.options) else None


def _files_whole(record: CaseRecord, folder: Path) -> bool:
    """Whether the rows and files of a case are still as the ledger says."""
    rows = sum(1 for _ in read_rows(folder, record.last.row_files))
    if rows != record.last.n_rows:
        return False
    return next(damaged_of(folder, record.last), None) is None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report a case that stands by its evidence, held against the gates of this call, instead of running it."""
    session = audit_session(item.config)
    record = stands(item, session)
    if record is None:
        return None
    outcome, message, verdicts = rejudged(record, session.gates, session)
    if (outcome, message, verdicts) != (record.outcome, record.last.message, record.verdicts):
        _record(session, record, outcome, message, verdicts)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.user_properties += properties(record.last.metrics, verdicts)
    *reports, teardown = _reports(item, outcome, message, verdicts)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    call = pytest.CallInfo.from_call(lambda: compat.tear_down_before(item, nextitem), "teardown")
    if call.excinfo is not None:  # What an earlier case of the module had set up broke.
        teardown = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=teardown)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def rejudged(
    record: CaseRecord, gates: tuple[Gate, ...], session: AuditSession
) -> tuple[str, str, tuple[Verdict, ...]]:
    """Outcome, message and verdicts of a case under the gates of this call."""
    verdicts = tuple(
        judge_case(gates, record.last.metrics, record.case_id, record.model, control=record.is_control, toy=record.toy)
    )
    if record.outcome == "failed" and record.last.cause != "gate":
        return record.outcome, record.last.message, verdicts
    lenient = session.report_only or record.toy
    message = failure(verdicts, report_only=lenient, undecided_fails=session.undecided_fails)
    if message:
        return "failed", message, verdicts
    return "passed", record.last.message if record.outcome == "passed" else "", verdicts


def _record(
    session: AuditSession, record: CaseRecord, outcome: str, message: str, verdicts: tuple[Verdict, ...]
) -> None:
    gate = outcome == "failed" and message.startswith("gate ")
    session.ledger.write(
        "judged",
        case_id=record.case_id,
        outcome=outcome,
        message=message,
        cause="gate" if gate else record.last.cause if outcome == "failed" else None,
        verdicts=[vars(verdict) for verdict in verdicts],
    )
    session.ledger.sync()


def _reports(item: pytest.Item, outcome: str, message: str, verdicts: tuple[Verdict, ...]) -> list[pytest.TestReport]:
    reports = []
    for when in ("setup", "call", "teardown"):
        failed = when == "call" and outcome == "failed"
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={name: 1 for name in item.keywords},
            outcome="failed" if failed else "passed",
            longrepr=message if failed else None,
            when=when,
            duration=0.0,
            user_properties=list(item.user_properties),
        )
        vars(report)["lm_audit_resumed"] = True
        vars(report)["lm_audit_verdict"] = worst(verdicts) if when == "call" else None
        reports.append(report)
    return reports


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A case that stood has its own letter and count."""
    if getattr(report, "lm_audit_resumed", False) and report.when == "call" and report.passed:
        return "resumed", "r", "RESUMED"
    return None
