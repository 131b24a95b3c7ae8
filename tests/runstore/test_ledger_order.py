"""The order of a ledger goes by session and monotonic clock, and lost records make an attempt incomplete."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lm_audit.report.page.build import build_page
from lm_audit.runstore import read_run
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.stats.estimate import Estimate
from tests.runstore.sample_ledger import CASE, begin, new_run


def record(folder: RunFolder, ledger: Ledger, value: float, number: int = 1, end: str | None = "passed") -> None:
    writer = begin(folder, ledger, number=number)
    writer.metric("bias.gap", Estimate(value))
    if end is not None:
        writer.end(end, 1.0)


def crash(ledger: Ledger, worker: str) -> None:
    fields = {"outcome": "crashed", "duration_s": None, "message": "died", "by": "controller", "worker": worker}
    ledger.write("case_end", case_id=CASE, attempt=0, **fields)


def test_a_clock_that_was_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_run(tmp_path)
    first = Ledger(folder.ledger, "main")
    first.write("run_start")
    record(folder, first, 0.1, end=None)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 7200)
    # A machine that was started anew counts its monotonic clock from 0.
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    second = Ledger(folder.ledger, "later", session=read_run(folder.path).sessions + 1)
    second.write("run_start")
    record(folder, second, 0.2, number=2)
    second.write("run_end", exitstatus=0, interrupted=False)
    run = read_run(folder.path)
    (case,) = run.cases
    assert (case.outcome, case.last.metrics["bias.gap"].value) == ("passed", 0.2)
    assert [attempt.outcome for attempt in case.earlier] == ["unfinished"]
    assert run.finished and run.sessions == 2


def test_a_run_took_what_its_sessions_took_whatever_the_clock_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run(tmp_path)
    for session, moments in enumerate(((100.0, 103.0), (5.0, 9.5)), 1):
        ledger = Ledger(folder.ledger, f"main{session}", session=session)
        for kind, moment in zip(("run_start", "run_end"), moments, strict=True):
            monkeypatch.setattr(time, "monotonic", lambda moment=moment: moment)
            monkeypatch.setattr(time, "time", lambda moment=moment: 1e6 - 7200 * moment)
            ledger.write("run_start" if kind == "run_start" else "run_end", pid=1, exitstatus=0)
    run = read_run(folder.path)
    assert run.seconds == 7.5
    assert dict(build_page(run).facts)["Duration"] == "7.5 s"


def test_a_clock_that_is_set_back_within_a_session_changes_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run(tmp_path)
    record(folder, Ledger(folder.ledger, "gw0"), 0.1, end="failed")
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    record(folder, Ledger(folder.ledger, "gw1"), 0.2)
    (case,) = read_run(folder.path).cases
    assert case.last.metrics["bias.gap"].value == 0.2


def test_a_ledger_of_an_older_version_goes_by_time_and_before_any_new_session(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    for value in (0.1, 0.2):
        record(folder, ledger, value, number=int(10 * value))
    lines = [json.loads(line) for line in ledger.path.read_text().splitlines()]
    for line in lines:
        del line["s"], line["m"]
        line.pop("records", None)
        line["t"] += 10**6 + 1000 * line["attempt"]
    ledger.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(folder.path).cases[0].last.metrics["bias.gap"].value == 0.2
    assert not read_run(folder.path).cases[0].last.incomplete
    record(folder, Ledger(folder.ledger, "next", session=1), 0.3, number=3)
    assert read_run(folder.path).cases[0].last.metrics["bias.gap"].value == 0.3


def test_a_worker_that_dies_after_the_end_of_its_case_leaves_it_finished(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    controller = Ledger(folder.ledger, "controller")
    record(folder, Ledger(folder.ledger, "gw0"), 0.1)
    crash(controller, "gw0")
    (case,) = read_run(folder.path).cases
    assert (case.outcome, case.earlier) == ("passed", ())
    assert case.last.metrics["bias.gap"].value == 0.1


def test_a_crash_in_a_later_session_is_none_of_the_earlier_ones(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    record(folder, Ledger(folder.ledger, "gw0"), 0.1, end="error")
    crash(Ledger(folder.ledger, "controller", session=2), "gw0")
    (case,) = read_run(folder.path).cases
    assert case.outcome == "crashed"
    assert [attempt.outcome for attempt in case.earlier] == ["error"]


def test_a_crash_of_another_worker_is_a_crash(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    record(folder, Ledger(folder.ledger, "gw0"), 0.1)
    crash(Ledger(folder.ledger, "controller"), "gw1")
    assert read_run(folder.path).cases[0].outcome == "crashed"


@pytest.mark.parametrize(
    "damage", ["garbage", "torn into the next", "gone", "changed into another kind", "a digit changed"]
)
@pytest.mark.parametrize("counted", [True, False])
def test_an_attempt_that_lost_a_record_is_incomplete(tmp_path: Path, damage: str, counted: bool) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    record(folder, ledger, 0.1)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    if not counted:
        end = json.loads(lines[-1])
        del end["records"]
        lines[-1] = json.dumps(end).encode() + b"\n"
    assert not read_run(folder.path).cases[0].last.incomplete
    metric = {
        "garbage": b"\x00\xff\n",
        "torn into the next": lines[1][:20] + b"\n",
        "gone": b"",
        "changed into another kind": lines[1].replace(b'"kind":"metric"', b'"kind":"metrik"'),
        "a digit changed": lines[1].replace(b'"value":0.1', b'"value":0.9'),
    }[damage]
    ledger.path.write_bytes(lines[0] + metric + b"".join(lines[2:]))
    found = read_run(folder.path).cases[0]
    assert found.outcome == "passed"
    assert found.last.incomplete is (counted or damage != "gone")


def test_damage_outside_of_an_attempt_is_none_of_its(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    record(folder, ledger, 0.1)
    with ledger.path.open("ab") as file:
        file.write(b"garbage\n")
    run = read_run(folder.path)
    assert run.damaged and not run.cases[0].last.incomplete


@pytest.mark.parametrize("place", range(7))
def test_in_a_ledger_without_counts_damage_among_an_attempts_lines_is_its_own(tmp_path: Path, place: int) -> None:
    """Line 0 belongs to the run, lines 1 to 5 to the attempt."""
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    ledger.write("run_start")
    writer = begin(folder, ledger)
    for text in "abc":
        writer.note(text)
    writer.end("passed", 1.0)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    end = json.loads(lines[-1])
    del end["records"]
    lines[-1] = json.dumps(end).encode() + b"\n"
    ledger.path.write_bytes(b"".join([*lines[:place], b"garbage\n", *lines[place:]]))
    assert read_run(folder.path).cases[0].last.incomplete is (2 <= place <= 5)


def test_a_second_end_takes_nothing_from_an_attempt_of_a_ledger_without_counts(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    record(folder, ledger, 0.1)
    lines = [json.loads(line) for line in ledger.path.read_text().splitlines()]
    del lines[-1]["records"]
    ledger.path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, lines[-1] | {"outcome": "error"}]))
    run = read_run(folder.path)
    assert len(run.damaged) == 1 and run.cases[0].outcome == "passed" and not run.cases[0].last.incomplete
