"""What the fold makes of several attempts, dead workers and resumed runs: nothing is attributed to the wrong one."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.evidence import Control, Figure
from lm_audit.findings import Finding, claim, control_finding
from lm_audit.runstore import read_run
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.records import PlannedCase, Verdict
from lm_audit.runstore.voids import void_audits, void_reason
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate
from tests.runstore.sample_ledger import CASE, begin, new_run

MISSED, MET = Verdict("bias.gap", "missed", "<= 1", "beyond"), Verdict("bias.gap", "met", "<= 3", "within")
EFFECT = Estimate(0.5, 0.4, 0.6, 40, method="t")
SEEN = claim(
    "gap", EFFECT, metric="bias.gap", margin=0.1, null=0.0, found="There is a gap", absent="None", unknown="Is there?"
)


def judged(ledger: Ledger, verdict: Verdict, outcome: str, case_id: str = CASE, cause: str | None = None) -> None:
    told = {"metric": verdict.metric, "word": verdict.word, "limit": verdict.limit, "reason": verdict.reason}
    fields = {"outcome": outcome, "message": f"now {verdict.word}", "cause": cause, "verdicts": [told]}
    ledger.write("judged", case_id=case_id, attempt=0, **fields)


def two_attempts(folder: RunFolder, case_id: str = CASE) -> None:
    """An attempt that met its gate in the first session, one that missed it in the second."""
    for session, verdict in ((1, MET), (2, MISSED)):
        writer = begin(folder, Ledger(folder.ledger, f"main{session}", session=session), case_id, number=session)
        writer.verdict(verdict)
        missed = verdict is MISSED
        writer.end("failed" if missed else "passed", 2.0 + session, "old", cause="gate" if missed else None)


@pytest.mark.parametrize("first", [1, 2])
def test_a_resumed_run_judges_the_last_attempt_by_its_own_gates(tmp_path: Path, first: int) -> None:
    folder = new_run(tmp_path)
    other = CASE.replace("-a]", "-b]")
    for case_id in (CASE, other):
        two_attempts(folder, case_id)
    new = Verdict("bias.gap", "met", "<= 9", "within")
    judged(Ledger(folder.ledger, "controller", session=3), new, "passed")
    cases = {case.case_id: case for case in read_run(folder.path).cases}
    case = cases[CASE]
    assert case.verdicts == (new,)
    assert (case.last.outcome, case.last.message, case.last.cause) == ("passed", "now met", None)
    assert case.last.duration_s == 4.0 and not case.last.incomplete
    assert [(a.outcome, a.message, a.duration_s) for a in case.earlier] == [("passed", "old", 3.0)]
    assert cases[other].verdicts == (MISSED,)
    assert (cases[other].last.outcome, cases[other].last.cause) == ("failed", "gate")


def test_a_judgement_that_fails_a_case_names_its_gate(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    writer.verdict(MET)
    writer.end("passed", 1.0)
    judged(Ledger(folder.ledger, "controller", session=2), MISSED, "failed", cause="gate")
    (case,) = read_run(folder.path).cases
    assert (case.outcome, case.last.cause, case.last.message) == ("failed", "gate", "now missed")
    assert case.verdicts == (MISSED,)


def test_findings_sources_and_captions_come_back(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    source = MetricSource.mean("score", {"half": "seen"})
    writer.metric("bias.gap", EFFECT, source)
    writer.metric("bias.other", EFFECT)
    writer.figure(Figure("f", "F", "table", {"columns": [], "rows": []}, "Dashed: chance."))
    writer.finding(SEEN)
    writer.finding(replace(SEEN, key="second"))
    writer.end("passed", 1.0)
    last = read_run(folder.path).cases[0].last
    assert dict(last.sources) == {"bias.gap": source}
    assert last.figures[0].caption == "Dashed: chance."
    assert [finding.key for finding in last.findings] == ["gap", "second"]
    assert last.findings[0].effect == EFFECT and last.findings[0].metric == "bias.gap"


def test_what_is_told_of_a_model_holds_nothing_of_the_ledger(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger)
    writer.model(fingerprint="a" * 8, dtype="float32")
    writer.model(spec="tiny")
    ledger.write(
        "figure", case_id=CASE, attempt=1, name="f", title="F", figure="table", data={"columns": [], "rows": []}
    )
    (case,) = read_run(folder.path).cases
    assert dict(case.model_details) == {"fingerprint": "a" * 8, "dtype": "float32", "spec": "tiny"}
    # Older versions wrote no caption.
    assert case.last.figures[0].caption == ""


@pytest.mark.parametrize(
    ("control", "outcome", "reason"),
    [
        (
            Control("negative", False, "silence", "noise"),
            "failed",
            "negative control failed: expected silence, observed noise",
        ),
        (Control("negative", True, "silence", "silence"), "error", "negative control error: why"),
        (None, "crashed", "positive control crashed: why"),
        (None, None, "positive control did not end"),
    ],
)
def test_the_reason_names_the_control_and_what_became_of_it(
    tmp_path: Path, control: Control | None, outcome: str | None, reason: str
) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"), control="positive")
    if control is not None:
        writer.control(control)
    if outcome is not None:
        writer.end(outcome, 1.0, "why")
    run = read_run(folder.path)
    assert void_reason(run, "bias", "tiny") == reason
    nobodys = replace(run, cases=tuple(replace(case, audit=None) for case in run.cases))
    assert void_audits(nobodys) == ()


def held(passed: bool, expected: str = "a gap") -> Finding:
    return control_finding(Control("positive", passed, expected, "seen" if passed else "none"))


@pytest.mark.parametrize("order", [(False, True), (True, False), (True, False, True)])
def test_the_finding_of_a_control_that_failed_stays_whatever_comes_after_it(
    tmp_path: Path, order: tuple[bool, ...]
) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"), control="positive")
    for passed in order:
        writer.finding(held(passed))
    writer.end("failed", 1.0)
    (finding,) = read_run(folder.path).cases[0].last.findings
    assert finding.held is False and "CONTROL FAILED" in finding.found


def test_a_later_word_of_a_finding_that_did_not_fail_stands(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    for finding in (held(True, "first"), held(True, "second"), SEEN, replace(SEEN, look="later")):
        writer.finding(finding)
    writer.end("passed", 1.0)
    found = {finding.key: finding for finding in read_run(folder.path).cases[0].last.findings}
    assert "second" in found["control.positive"].found and found["gap"].look == "later"


def crashed(ledger: Ledger, worker: str | None, case_id: str = CASE) -> None:
    fields = {"outcome": "crashed", "duration_s": None, "message": "died", "by": "controller"}
    told = {} if worker is None else {"worker": worker}
    ledger.write("case_end", case_id=case_id, attempt=0, **fields, **told)


@pytest.mark.parametrize("name", ["gw1", "node-a-gw1"])
def test_a_dead_worker_ends_its_own_open_attempt_and_no_other(tmp_path: Path, name: str) -> None:
    folder = new_run(tmp_path)
    for worker in ("gw0", name):
        begin(folder, Ledger(folder.ledger, worker)).note(worker)
    begin(folder, Ledger(folder.ledger, f"{name}0"), "t.py::y[tiny@cpu-b]").note("another case")
    crashed(Ledger(folder.ledger, "controller"), name)
    cases = {case.case_id: case for case in read_run(folder.path).cases}
    attempts = {a.notes[0]: a.outcome for a in (*cases[CASE].earlier, cases[CASE].last)}
    assert attempts == {"gw0": "unfinished", name: "crashed"}
    assert cases["t.py::y[tiny@cpu-b]"].outcome == "unfinished"


def test_the_last_open_attempt_of_a_dead_worker_is_the_one_it_died_in(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "gw1")
    for number in (1, 2):
        begin(folder, ledger, number=number).note(str(number))
    crashed(Ledger(folder.ledger, "controller"), "gw1")
    (case,) = read_run(folder.path).cases
    assert [(a.notes, a.outcome) for a in (*case.earlier, case.last)] == [(("1",), "unfinished"), (("2",), "crashed")]


def test_cases_that_never_began_each_have_an_attempt_that_says_who_died_and_when(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    begin(folder, Ledger(folder.ledger, "gw0")).end("passed", 1.0)
    controller = Ledger(folder.ledger, "controller", session=2)
    for case_id in (CASE, "b", "c"):
        crashed(controller, "gw1", case_id)
    crashed(controller, "gw1", "b")
    crashed(controller, None, "d")
    cases = {case.case_id: case for case in read_run(folder.path).cases}
    assert [a.outcome for a in (*cases[CASE].earlier, cases[CASE].last)] == ["passed", "crashed"]
    # What the finished attempt said of the case still holds: the one that never began says nothing.
    assert (cases[CASE].audit, cases[CASE].model) == ("bias", "tiny")
    assert [cases[name].outcome for name in "bcd"] == ["crashed"] * 3
    assert len(cases["b"].earlier) == 1 and not cases["c"].earlier
    assert cases["c"].last.worker == "gw1" and cases["d"].last.worker == ""
    assert cases["c"].last.started is not None and not cases["c"].last.incomplete


def test_what_is_planned_for_no_audit_voids_none(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    ledger.write("plan", cases=[{"case_id": CASE, "audit": "bias", "model": "tiny", "control_role": "positive"}])
    run = read_run(folder.path)
    (void,) = void_audits(run)
    assert (void.audit, void.model, void.case_id) == ("bias", "tiny", CASE)
    none = (PlannedCase("a", None, "tiny", control_role="positive"), PlannedCase("b", "bias", "tiny"))
    assert void_audits(replace(run, plan=none)) == ()


def test_all_reasons_of_a_void_audit_are_told(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    names = ["positive", "negative"]
    plan = [{"case_id": name, "audit": "bias", "model": "tiny", "control_role": name} for name in names]
    ledger.write("plan", cases=plan)
    run = read_run(folder.path)
    assert void_reason(run, "bias", "tiny") == "positive control did not run; negative control did not run"


def test_a_worker_that_was_taken_for_dead_may_still_say_how_its_case_ended(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "gw1"))
    crashed(Ledger(folder.ledger, "controller"), "gw1")
    writer.end("passed", 2.5)
    run = read_run(folder.path)
    (case,) = run.cases
    assert (case.outcome, case.last.duration_s, case.earlier, run.damaged) == ("passed", 2.5, (), ())
    writer.end("failed", 2.5)
    run = read_run(folder.path)
    assert run.cases[0].outcome == "passed" and "ended before, passed" in run.damaged[0].reason


def test_the_code_of_an_attempt_and_the_digests_of_its_rows_come_back(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger, code_version="c0de")
    writer.rows([{"item": "1"}])
    writer.end("passed", 1.0)
    last = read_run(folder.path).cases[0].last
    ((name, digest),) = last.row_digests.items()
    assert last.code_version == "c0de"
    assert (name,) == last.row_files and digest == hashlib.sha256((folder.path / name).read_bytes()).hexdigest()
    # Older versions wrote no digest.
    ledger.write("rows", case_id=CASE, attempt=1, file="rows/older.jsonl", n=3)
    last = read_run(folder.path).cases[0].last
    assert dict(last.row_digests) == {name: digest} and last.n_rows == 4


@pytest.mark.parametrize(
    ("control", "cause", "void"),
    [
        (Control("positive", True, "a gap", "0.9"), "gate", False),  # older versions held controls against gates
        (Control("positive", True, "a gap", "0.9"), "control", True),
        (Control("positive", True, "a gap", "0.9"), None, True),
        (None, "gate", True),
        (None, None, True),
    ],
)
def test_a_control_that_a_gate_alone_failed_has_shown_what_it_should(
    tmp_path: Path, control: Control | None, cause: str | None, void: bool
) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"), control="positive")
    if control is not None:
        writer.control(control)
    writer.end("failed", 1.0, "why", cause=cause)
    reason = void_reason(read_run(folder.path), "bias", "tiny")
    assert reason == ("positive control failed: why" if void else None)


def test_two_models_under_one_name_are_told_by_the_case_that_met_the_second(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    prints = ("b" * 20, "b" * 20, "a" * 20)
    for number, fingerprint in enumerate(prints):
        writer = begin(folder, ledger, f"t.py::x{number}[tiny@cpu]")
        writer.model(fingerprint=fingerprint)
        writer.end("passed", 1.0)
    (void,) = void_audits(read_run(folder.path))
    assert (void.audit, void.model, void.case_id) == ("bias", "tiny", "t.py::x2[tiny@cpu]")
    told = ", ".join(("a" * 12, "b" * 12))
    assert void.reason == f"2 models were measured under the name tiny: fingerprints {told}"


@pytest.mark.parametrize("lacking", ["outcome", "verdicts"])
def test_a_judgement_that_lacks_something_changes_nothing(tmp_path: Path, lacking: str) -> None:
    folder = new_run(tmp_path)
    two_attempts(folder)
    told: dict[str, Any] = {"outcome": "passed", "message": "now met", "cause": None, "verdicts": []}
    del told[lacking]
    Ledger(folder.ledger, "controller", session=3).write("judged", case_id=CASE, attempt=0, **told)
    run = read_run(folder.path)
    (case,) = run.cases
    assert (case.outcome, case.last.message, case.last.cause, case.verdicts) == ("failed", "old", "gate", (MISSED,))
    assert f"{lacking} is missing" in run.damaged[0].reason


def test_an_attempt_begins_once_and_says_when_how_marked_and_whether_on_a_toy(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    before = time.time()
    for case_id, told in ((CASE, {"toy": True, "markers": ["bias", "slow"]}), ("b", {"toy": False}), ("c", {})):
        begin(folder, ledger, case_id, **told).end("passed", 1.0)
    begin(folder, ledger, "b", audit="needle")
    run = read_run(folder.path)
    assert {case.case_id: (case.toy, case.audit) for case in run.cases} == {
        CASE: (True, "bias"), "b": (False, "bias"), "c": (False, "bias")
    }  # fmt: skip
    assert all(before <= (case.last.started or 0.0) <= time.time() for case in run.cases)
    assert [case.markers for case in run.cases] == [("bias", "slow"), (), ()]
    (damage,) = run.damaged
    assert damage.reason == "case_start: ValueError: the attempt began before"


def test_first_attempts_of_several_workers_are_numbered_in_their_order(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    for name in ("gw0", "gw1", "gw2"):
        begin(folder, Ledger(folder.ledger, name)).end("error", 1.0)
    (case,) = read_run(folder.path).cases
    assert [(attempt.number, attempt.worker.partition("-")[0]) for attempt in (*case.earlier, case.last)] == [
        (1, "gw0"), (2, "gw1"), (3, "gw2")
    ]  # fmt: skip
