"""Ledgers that are not this run's, or not all of it: named, and no number of another run is shown as one of this."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import StoreError
from lm_audit.runstore import metadata
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.merging.merge import merge_runs
from lm_audit.runstore.records import Run
from lm_audit.runstore.run import read_run
from lm_audit.runstore.soundness.belonging import ledger_sizes
from lm_audit.stats.estimate import Estimate
from tests.runstore.sample_ledger import begin

CASES = ("t.py::test_x[tiny@cpu-a]", "t.py::test_x[tiny@cpu-b]")


def written(reports: Path, name: str, value: float, cases: tuple[str, ...] = CASES) -> Path:
    """A run of two workers as the plugin writes it, each with one case of this value."""
    folder = RunFolder(reports / name)
    folder.create()
    metadata.start(folder, command=["pytest"], root=reports, options={})
    controller = Ledger(folder.ledger, "controller", run=name)
    controller.write("run_start", run=name, pid=1)
    controller.write("plan", cases=[{"case_id": case} for case in cases])
    for number, case in enumerate(cases):
        worker = Ledger(folder.ledger, f"gw{number}", run=name)
        attempt = begin(folder, worker, case)
        attempt.metric("bias.gap", Estimate(value))
        attempt.metric("bias.other", Estimate(value))
        attempt.end("passed", 1.0)
        worker.close()
    controller.write("run_end", exitstatus=0, interrupted=False, ledgers=ledger_sizes(folder))
    controller.close()
    metadata.finish(folder, 0)
    return folder.path


def values(run: Run) -> set[float | None]:
    return {estimate.value for case in run.cases for estimate in case.last.metrics.values()}


def of_worker(run: Path, worker: str) -> Path:
    return next((run / "ledger").glob(f"{worker}-*.jsonl"))


def test_an_undisturbed_run_a_copy_and_a_merged_one_are_whole(tmp_path: Path) -> None:
    ours = written(tmp_path, "ours", 0.2, CASES[:1])
    copy = shutil.copytree(ours, tmp_path / "copy")
    metadata.start(RunFolder(copy), command=["pytest"], root=tmp_path, options={})  # it is resumed under its new name
    more = Ledger(RunFolder(copy).ledger, "main", session=2, run="copy")
    more.write("run_start", run="copy", pid=1)
    more.write("run_end", exitstatus=0, interrupted=False, ledgers=ledger_sizes(RunFolder(copy)))
    merged = merge_runs([ours, written(tmp_path, "theirs", 0.7, CASES[1:])], tmp_path / "merged").folder
    again = merge_runs([merged, written(tmp_path, "third", 0.5, ("t.py::test_x[tiny@cpu-c]",))], tmp_path / "again")
    thrice = merge_runs([again.folder], tmp_path / "thrice")
    all_three = {0.2, 0.5, 0.7}
    for folder, found in (
        (ours, {0.2}), (copy, {0.2}), (merged, {0.2, 0.7}), (again.folder, all_three), (thrice.folder, all_three),
    ):  # fmt: skip
        run = read_run(folder)
        assert not run.damaged and values(run) == found, folder


@pytest.mark.parametrize("how", ["in place of ours", "beside ours", "behind ours"])
def test_records_of_another_run_are_left_out_and_named(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = written(tmp_path, "ours", 0.2), written(tmp_path, "theirs", 0.7)
    own, other = of_worker(ours, "gw1"), of_worker(theirs, "gw1")
    if how == "behind ours":
        own.write_bytes(own.read_bytes() + other.read_bytes())
    else:
        shutil.copy(other, own if how == "in place of ours" else own.with_name("gw7-1.jsonl"))
    run = read_run(ours)
    assert values(run) == {0.2} and run.missing == (CASES[1:] if how == "in place of ours" else ())
    damaged = next(one for one in run.damaged if "another run" in one.reason)
    assert "4 records are of another run, theirs, and are left out" in damaged.reason
    assert damaged.line == (5 if how == "behind ours" else 1)
    assert main(["report", str(ours)]) == 0 and damaged.file in capsys.readouterr().err


def test_a_run_json_of_another_run_is_named_and_not_believed(tmp_path: Path) -> None:
    ours, theirs = written(tmp_path, "ours", 0.2), written(tmp_path, "theirs", 0.7)
    shutil.copy(theirs / "run.json", ours / "run.json")
    run = read_run(ours)
    assert values(run) == {0.2} and not run.metadata
    assert [(one.file, one.reason) for one in run.damaged] == [
        ("run.json", "is not this run's: it is of theirs, the ledgers are of ours")
    ]
    with pytest.raises(StoreError, match=r"run\.json: is not this run's"):
        merge_runs([ours], tmp_path / "merged")


def test_a_run_of_an_older_version_states_no_run(tmp_path: Path) -> None:
    ours = written(tmp_path, "ours", 0.2)
    record = json.loads((ours / "run.json").read_text())
    del record["checksum"]
    for session in record["sessions"]:
        del session["run"]
    (ours / "run.json").write_text(json.dumps(record))
    shutil.copy(of_worker(written(tmp_path, "theirs", 0.7), "gw1"), of_worker(ours, "gw1").with_name("gw7-1.jsonl"))
    assert not read_run(ours).damaged


@pytest.mark.parametrize("merged", [False, True], ids=["run", "merged"])
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (Path.unlink, "is gone, and with it what its process recorded"),
        (lambda path: path.write_bytes(b""), "was cut: 0 of"),
        (lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1])), "was cut: "),
    ],
    ids=["removed", "emptied", "last line"],
)
def test_a_ledger_that_is_gone_or_short_is_named(tmp_path: Path, merged: bool, damage: object, reason: str) -> None:
    run = written(tmp_path, "ours", 0.2)
    if merged:
        run = merge_runs([run], tmp_path / "merged").folder
    path = of_worker(run, "gw0")
    assert callable(damage)
    damage(path)
    (found,) = read_run(run).damaged
    assert found.file == f"ledger/{path.name}" and found.reason.startswith(reason)


@pytest.mark.parametrize("kept", [0, 2], ids=["nothing", "all but the end"])
def test_a_run_that_ended_and_has_no_end_is_named(tmp_path: Path, kept: int) -> None:
    run = written(tmp_path, "ours", 0.2)
    path = of_worker(run, "controller")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    (found,) = read_run(run).damaged
    assert found.file == "ledger" and "holds no end of the run, though run.json says that it ended" in found.reason


def test_records_that_vanished_from_a_case_are_named(tmp_path: Path) -> None:
    run = written(tmp_path, "ours", 0.2)
    path = of_worker(run, "gw1")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]) + b" " * len(lines[1]) + b"\n")  # of the size that was recorded
    (found,) = read_run(run).damaged
    assert (
        found.file == f"ledger/{path.name}"
        and found.reason == f"{CASES[1]}: 2 of the 3 records before its end are there"
    )
    assert found.line == len(lines) - 1  # its end, which counts them
