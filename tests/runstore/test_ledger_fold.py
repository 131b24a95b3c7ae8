"""What is written to a ledger comes back; what is damaged is skipped, named and counted."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.errors import StoreError, UsageError
from lm_audit.evidence import Control, Evidence, Figure
from lm_audit.runstore import read_rows, read_run
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder, attempt_key, check_writable, is_run_id, new_run_id
from lm_audit.runstore.ledger import Ledger, LineFile
from lm_audit.runstore.named import find_run
from lm_audit.runstore.reader import planned_ids
from lm_audit.runstore.records import Verdict
from lm_audit.runstore.voids import void_audits, void_reason
from lm_audit.stats.estimate import Estimate
from tests.runstore.sample_ledger import CASE, begin, new_run


def test_everything_recorded_comes_back(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger)
    metric, figure = (
        Estimate(0.5, 0.4, 0.6, n=10, method="Wilson"),
        Figure("f", "F", "table", {"columns": [], "rows": []}),
    )
    attached = tmp_path / "plot.txt"
    attached.write_text("hello")
    writer.metric("bias.gap", metric)
    writer.rows([{"item": "1", "score": float("-inf")}])
    writer.rows([{"item": "2", "score": 2.0}])
    writer.figure(figure)
    artifact = writer.attach(attached)
    writer.control(Control("positive", True, "a gap", "a gap of 3"))
    writer.parameter("words", ["a", "b"])
    writer.note("careful")
    writer.headline("bias.gap")
    writer.verdict(Verdict("bias.gap", "met", "<= 1", "within"))
    writer.end("passed", 1.25)

    case = read_run(folder.path).cases[0]
    last = case.last
    assert (case.case_id, case.audit, case.model, case.device, case.fingerprint) == (CASE, "bias", "tiny", "cpu", "f")
    assert (last.outcome, last.duration_s, last.headline, last.notes) == ("passed", 1.25, "bias.gap", ("careful",))
    assert last.metrics == {"bias.gap": metric}
    assert last.figures == (figure,)
    assert last.artifacts == (artifact,)
    assert (folder.path / artifact.path).read_text() == "hello"
    assert last.control == Control("positive", True, "a gap", "a gap of 3")
    assert last.parameters == {"words": ["a", "b"]}
    assert case.verdicts == (Verdict("bias.gap", "met", "<= 1", "within"),)
    assert last.n_rows == 2
    rows = list(read_rows(folder.path, last.row_files))
    assert rows == [{"item": "1", "score": float("-inf")}, {"item": "2", "score": 2.0}]


def test_the_last_attempt_stands_and_earlier_ones_are_history(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    for number, value in enumerate((0.1, 0.2, 0.3), 1):
        writer = begin(folder, ledger, number=number)
        writer.metric("bias.gap", Estimate(value))
        writer.end("failed" if number < 3 else "passed", 1.0)
    case = read_run(folder.path).cases[0]
    assert [a.metrics["bias.gap"].value for a in (*case.earlier, case.last)] == [0.1, 0.2, 0.3]
    assert [a.number for a in (*case.earlier, case.last)] == [1, 2, 3]
    assert case.outcome == "passed"


def test_a_start_without_end_is_unfinished_and_missing(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    ledger.write("plan", cases=[{"case_id": CASE, "audit": "bias"}, {"case_id": "other", "audit": "bias"}])
    begin(folder, ledger).metric("bias.gap", Estimate(0.1))
    run = read_run(folder.path)
    assert run.cases[0].outcome == "unfinished"
    assert run.cases[0].last.metrics["bias.gap"].value == 0.1
    assert run.missing == (CASE, "other")
    assert not run.finished


def test_the_controller_ends_the_case_of_a_dead_worker(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    begin(folder, Ledger(folder.ledger, "gw1")).metric("bias.gap", Estimate(0.1))
    controller = Ledger(folder.ledger, "controller")
    controller.write(
        "case_end",
        case_id=CASE,
        attempt=0,
        outcome="crashed",
        duration_s=None,
        message="x",
        by="controller",
        worker="gw1",
    )
    controller.write(
        "case_end",
        case_id="b",
        attempt=0,
        outcome="crashed",
        duration_s=None,
        message="y",
        by="controller",
        worker="gw1",
    )
    cases = {case.case_id: case for case in read_run(folder.path).cases}
    assert cases[CASE].outcome == "crashed"
    assert cases[CASE].earlier == ()
    assert cases[CASE].last.metrics["bias.gap"].value == 0.1
    assert cases["b"].outcome == "crashed"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b'{"v":1,"t":1,"kind":"met', "torn"),
        (b"\x00\xff garbage\n", "not JSON"),
        (b"[1, 2]\n", "not a ledger record"),
        (b'{"v":99,"t":1,"kind":"note"}\n', "newer"),
        (b'{"v":1,"t":"late","kind":"note"}\n', "not a number"),
        (b'{"v":1,"t":9e9,"kind":"metric","case_id":"c","attempt":1,"name":"m","estimate":{"value":null}}\n', "reason"),
        (b'{"v":1,"t":9e9,"kind":"no_such","case_id":"c","attempt":1}\n', "no_such"),
        (b'{"v":1,"t":9e9,"kind":"no_such"}\n', "no_such"),
        (b'{"v":true,"t":9e9,"kind":"note"}\n', "schema version True is not a whole number from 0"),
        (b'{"v":1,"t":9e9,"kind":["note"]}\n', "its kind must be text"),
        (b'{"v":1,"t":9e9,"s":1.5,"kind":"note"}\n', "session 1.5 is not a whole number"),
        (b'{"v":1,"t":9e9,"kind":"note","attempt":1,"text":"x"}\n', "case_id is missing"),
        (b'{"v":1,"t":9e9,"kind":"note","case_id":["c"],"attempt":1,"text":"x"}\n', "case_id cannot be list"),
        (b'{"v":1,"t":9e9,"kind":"note","case_id":"c","attempt":true,"text":"x"}\n', "attempt cannot be bool"),
        (b'{"v":1,"t":9e9,"kind":"case_end","case_id":"c","attempt":1}\n', "outcome is missing"),
        (b'{"v":1,"t":9e9,"kind":"case_end","case_id":"c","attempt":1,"outcome":"fine"}\n', "outcome cannot be str"),
        (b'{"v":1,"t":9e9,"kind":"plan"}\n', "cases is missing"),
        (b'{"v":1,"t":9e9,"kind":"run_end","interrupted":"no"}\n', "interrupted cannot be str"),
    ],
)
def test_damaged_lines_are_skipped_named_and_counted(tmp_path: Path, damage: bytes, reason: str) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger)
    writer.metric("bias.gap", Estimate(0.5))
    writer.end("passed", 1.0)
    with ledger.path.open("ab") as handle:
        handle.write(damage)
    run = read_run(folder.path)
    assert [(line.file, line.line) for line in run.damaged] == [(f"ledger/{ledger.path.name}", 4)]
    assert reason in run.damaged[0].reason
    assert next(c for c in run.cases if c.case_id == CASE).last.metrics["bias.gap"].value == 0.5


def test_a_torn_line_costs_itself_only_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')
    file = LineFile(path)
    file.append({"a": 3})
    assert path.read_bytes() == b'{"a":1}\n{"a":\n{"a":3}\n'


def test_a_full_disk_is_told_and_costs_only_what_was_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    file = LineFile(path)
    file.append({"a": 1})
    real = os.write

    def half_then_full(handle: int, data: bytes) -> int:
        if len(data) > 5:
            return real(handle, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", half_then_full)
    with pytest.raises(StoreError, match="No space left on device; everything recorded before is kept"):
        file.append({"a": 222})
    monkeypatch.setattr(os, "write", real)
    file.append({"a": 3})
    sound = [line for line in path.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line)["a"] for line in sound] == [1, 3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_dev_full_gives_the_same_error() -> None:
    with pytest.raises(StoreError, match="No space left"):
        LineFile(Path("/dev/full")).append({"a": 1})


def test_rows_need_an_item_that_is_unique_in_the_case(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    with pytest.raises(StoreError, match="without the key 'item'"):
        writer.rows([{"x": 1}])
    writer.rows([{"item": "1"}])
    with pytest.raises(StoreError, match="'1' is recorded twice"):
        writer.rows([{"item": "1"}])


@pytest.mark.parametrize(
    "record", [lambda writer: writer.rows([{"item": "1"}]), lambda writer: writer.note("x")], ids=["rows", "note"]
)
def test_a_forked_process_records_nothing(tmp_path: Path, record: Callable[[AttemptWriter], object]) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    if (child := os.fork()) == 0:
        try:
            record(writer)
        except StoreError:
            os._exit(3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    record(writer)


def test_attachments_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    source = tmp_path / "a.csv"
    source.write_text("1")
    first = writer.attach(source)
    source.write_text("2")
    second = writer.attach(source)
    assert [(folder.path / artifact.path).read_text() for artifact in (first, second)] == ["1", "2"]
    with pytest.raises(StoreError, match=r"absent\.csv"):
        writer.attach(tmp_path / "absent.csv")


def test_run_ids_and_finding_runs(tmp_path: Path) -> None:
    run_id = new_run_id()
    assert is_run_id(run_id)
    folder = new_run(tmp_path)
    reports = folder.path.parent
    assert find_run(folder.run_id, reports) == folder.path.resolve()
    assert find_run(str(folder.path), tmp_path) == folder.path.resolve()
    with pytest.raises(Exception, match=r"no run 'nope'.*20260101-000000-abcd"):
        find_run("nope", reports)
    with pytest.raises(StoreError, match="no ledger/"):
        read_run(tmp_path)


def test_the_latest_run_is_the_one_that_began_last(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run 'latest'"):
        find_run("latest", tmp_path)
    for name in ("20260301-000000-aaaa", "20260401-000000-bbbb", "20260201-000000-zzzz"):
        RunFolder(tmp_path / name).create()
        (tmp_path / name / "ledger" / "main-1.jsonl").touch()
    RunFolder(tmp_path / "20260501-000000-cccc").create()  # killed before it wrote anything
    assert find_run("latest", tmp_path).name == "20260401-000000-bbbb"
    (tmp_path / "latest").symlink_to("20260201-000000-zzzz")  # somebody's own idea of it
    assert find_run("latest", tmp_path).name == "20260201-000000-zzzz"


def test_an_unusable_reports_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--reports DIR"):
        check_writable(tmp_path / "file" / "reports")
    check_writable(tmp_path / "not" / "yet" / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_attempt_keys_are_unique_and_safe_for_files() -> None:
    ids = ["t.py::x[a/b@cpu-é]", "t.py::x[a_b@cpu-é]", "t.py::x[" + "l" * 500 + "]", "t.py::x[..]"]
    keys = {attempt_key(case_id, 1, "main-1") for case_id in ids}
    assert len(keys) == len(ids)
    assert all("/" not in key and len(key) < 120 and not key.startswith(".") for key in keys)


@pytest.mark.parametrize(
    ("outcome", "control", "void"),
    [
        ("passed", Control("positive", True, "x", "x"), False),
        ("passed", None, False),
        ("skipped", None, False),
        ("failed", Control("positive", False, "a gap", "none"), True),
        ("error", None, True),
        ("crashed", None, True),
        (None, None, True),
    ],
)
def test_an_audit_whose_control_did_not_work_is_void(
    tmp_path: Path, outcome: str | None, control: Control | None, void: bool
) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger, control="positive")
    if control is not None:
        writer.control(control)
    if outcome is not None:
        writer.end(outcome, 1.0, "why")
    run = read_run(folder.path)
    assert bool(void_audits(run)) is void
    assert (void_reason(run, "bias", "tiny") is not None) is void
    assert void_reason(run, "bias", "other") is None
    assert void_reason(run, "leakage", "tiny") is None


def test_a_planned_control_that_never_ran_voids_every_model_if_it_is_pinned(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    planned = {"case_id": CASE, "audit": "bias", "model": "tiny", "control_role": "negative", "pinned": True}
    ledger.write("plan", cases=[planned])
    run = read_run(folder.path)
    assert void_reason(run, "bias", "smollm2") == "negative control did not run"
    unpinned = replace(run, plan=tuple(replace(case, pinned=False) for case in run.plan))
    assert void_reason(unpinned, "bias", "smollm2") is None


OTHER = CASE.replace("-a]", "-b]")
FAILED, HELD = Control("positive", False, "a gap", "none"), Control("positive", True, "a gap", "a gap of 3")


@pytest.mark.parametrize("controls", [[FAILED, HELD], [HELD, FAILED], [HELD, FAILED, HELD], [FAILED, HELD, HELD]])
@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_failed_control_stays_failed_whatever_comes_after_it(
    tmp_path: Path, controls: list[Control], outcome: str
) -> None:
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"), control="positive")
    for control in controls:
        writer.control(control)
    writer.end(outcome, 1.0)
    run = read_run(folder.path)
    assert run.cases[0].last.control == FAILED
    assert "expected a gap, observed none" in (void_reason(run, "bias", "tiny") or "")


def shown(folder: RunFolder, session: int, control: Control, writer: str = "main", number: int = 1) -> None:
    """A control's case in a session of the run, by a process of its own."""
    ledger = Ledger(folder.ledger, writer, session=session)
    attempt = begin(folder, ledger, number=number, control="positive", code_version=f"code {session}")
    attempt.control(control)
    attempt.end("passed" if control.passed else "failed", 1.0)


def number(folder: RunFolder, session: int, case_id: str = OTHER) -> None:
    """A case that measures in a session of the run."""
    attempt = begin(folder, Ledger(folder.ledger, f"gw{session}", session=session), case_id, number=session)
    attempt.metric("bias.gap", Estimate(0.5, n=9))
    attempt.end("passed", 1.0)


@pytest.mark.parametrize("writers", [("main", "main"), ("gw0", "gw1"), ("gw1", "gw0")])
def test_a_control_that_failed_is_not_mended_by_running_it_again(tmp_path: Path, writers: tuple[str, str]) -> None:
    """By a plugin that repeats what fails, in one process or, where a worker was taken for dead, in two."""
    folder = new_run(tmp_path)
    number(folder, 1)
    for at, (writer, control) in enumerate(zip(writers, (FAILED, HELD), strict=True), start=1):
        shown(folder, 1, control, writer, at)
    run = read_run(folder.path)
    assert run.cases[-1].last.control == FAILED and void_reason(run, "bias", "tiny")


def test_numbers_of_a_session_whose_control_failed_stay_void(tmp_path: Path) -> None:
    """The control alone ran again, with other code; the audit is sound when its cases have run again as well."""
    folder = new_run(tmp_path)
    number(folder, 1)
    shown(folder, 1, FAILED)
    shown(folder, 2, HELD, "again", 2)
    run = read_run(folder.path)
    assert "failed with 1 case that has not run again since" in str(void_reason(run, "bias", "tiny"))
    assert void_reason(run, "bias", "smollm2") is None and void_reason(run, "leakage", "tiny") is None
    number(folder, 2)
    assert void_reason(read_run(folder.path), "bias", "tiny") is None
    number(folder, 3, OTHER.replace("-b]", "-c]"))
    assert void_reason(read_run(folder.path), "bias", "tiny") is None


def test_evidence_keeps_a_failed_control_too() -> None:
    evidence = Evidence("bias", control=FAILED)
    evidence.control = HELD
    assert evidence.control == FAILED
    evidence.control = None
    assert evidence.control == FAILED
    held = Evidence("bias", control=HELD)
    held.control = FAILED
    assert held.control == FAILED


@pytest.mark.parametrize(("second", "void"), [("a" * 32, False), ("b" * 32, True), (None, False)])
def test_two_models_under_one_name_void_what_was_measured_on_either(
    tmp_path: Path, second: str | None, void: bool
) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    for case_id, audit, fingerprint in ((CASE, "bias", "a" * 32), ("t.py::y[tiny@cpu-b]", "needle", second)):
        writer = begin(folder, ledger, case_id, audit=audit)
        writer.model(fingerprint=fingerprint, dtype="float32", spec="tiny")
        writer.end("passed", 1.0, "")
    run = read_run(folder.path)
    assert {entry.audit for entry in void_audits(run)} == ({"bias", "needle"} if void else set())
    if void:
        assert "2 models were measured under the name tiny" in str(void_reason(run, "bias", "tiny"))
        assert void_reason(run, "bias", "other") is None


def test_the_first_end_of_an_attempt_stands_and_a_later_one_is_named(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger)
    writer.end("failed", 1.0)
    writer.end("passed", 1.0)
    run = read_run(folder.path)
    assert run.cases[0].outcome == "failed" and "ended before, failed" in run.damaged[0].reason


def test_a_control_passed_only_where_it_says_true(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    writer = begin(folder, ledger)
    ledger.write("control", case_id=CASE, attempt=1, role="positive", passed="no", expected="e", observed="o")
    writer.end("passed", 1.0)
    run = read_run(folder.path)
    assert run.cases[0].last.control is None and "passed cannot be str" in run.damaged[0].reason


def test_an_attempt_keeps_its_number_where_an_earlier_one_is_lost(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    for number in (2, 3):
        begin(folder, ledger, number=number).end("passed", 1.0)
    case = read_run(folder.path).cases[0]
    assert [attempt.number for attempt in (*case.earlier, case.last)] == [2, 3]


def test_rows_of_an_attempt_never_join_those_that_a_lost_one_left(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    for score in (1.0, 2.0):  # The process ids of containers repeat: the same writer, case and number.
        begin(folder, ledger).rows([{"item": "a", "score": score}])
    assert len(list(folder.rows.iterdir())) == 2


def test_planned_ids_come_from_sound_plans_alone(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    ledger = Ledger(folder.ledger, "main")
    plans: tuple[object, ...] = ("x", {}, [{"case_id": 3}, {}, 7, {"case_id": CASE}])
    for cases in plans:
        ledger.write("plan", cases=cases)
    (folder.ledger / "gw0-1.jsonl").mkdir()
    (folder.ledger / "gw1-1.jsonl").symlink_to("/etc/hostname")
    assert planned_ids(folder) == {CASE}
