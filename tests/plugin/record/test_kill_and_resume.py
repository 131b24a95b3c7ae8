"""Kill, interrupt, terminate or starve a run at any moment: what was recorded is on disk, and --resume finishes it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.plugin.acknowledging_audit import (
    Measured,
    acknowledged,
    audit_source,
    check_nothing_lost,
    evidence_of,
    only_run,
)
from tests.plugin.toy_run import command, environment, run_pytest, start_pytest, write_project
from tests.plugin.warm_start import WarmProcess

CASES = 14
MODEL_CASES = 3
HELD = 4
"""So many of the last cases wait until ``release`` is there: more than one worker can hold, so that all are busy."""
RECORDS = 5 * (CASES - HELD)
"""What the others acknowledge: four metrics and the rows of each."""
TIMEOUT_S = 300.0

Found = TypeVar("Found")


def project_in(folder: Path, cases: int = CASES, model_cases: int = 0) -> Path:
    return write_project(folder, test_toy=audit_source(cases, model_cases=model_cases))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The evidence of a run that nothing happened to."""
    folder = project_in(tmp_path_factory.mktemp("undisturbed"))
    assert run_pytest(folder, TOY_PAUSE="0").code == 0
    return evidence_of(only_run(folder))


Process = subprocess.Popen[str] | WarmProcess


@contextmanager
def running(folder: Path, *arguments: str, fresh: bool = False, **variables: str) -> Iterator[Process]:
    """A pytest that runs in a process group of its own; whatever is left of it is killed at the end.

    It does not come to its end before ``release(folder)``: a test that ends it may take its time. ``fresh``: in a new
    interpreter, as a user calls it.
    """
    variables["TOY_RELEASE"] = str(folder / "release")
    process: Process
    if fresh:
        process = subprocess.Popen(
            command(*arguments), cwd=folder, env=environment(**variables),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
    else:
        process = start_pytest(folder, *arguments, **variables)
    try:
        yield process
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)


def release(folder: Path) -> None:
    (folder / "release").touch()


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], Found], what: str) -> Found:
    """What ``condition`` gives once it is true."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError(f"waited {TIMEOUT_S} s for {what}")


def wait_for_records(folder: Path, count: int) -> list[dict[str, Any]]:
    """Wait until so many records were acknowledged."""

    def enough() -> list[dict[str, Any]]:
        found = acknowledged(folder)
        return found if len(found) >= count else []

    return wait_for(enough, f"{count} records")


def end_of(process: Process) -> str:
    """The output of a process once it and all of its group have gone."""
    output, _ = process.communicate(timeout=TIMEOUT_S)
    wait_for(lambda: not group_lives(process.pid), "the workers to leave")
    return output


def resume(folder: Path, *arguments: str) -> None:
    run = only_run(folder)
    outcome = run_pytest(folder, "--resume", run.run_id, *arguments, TOY_PAUSE="0")
    assert outcome.code == 0, outcome.output


def check_resumed(folder: Path, undisturbed: Measured, *arguments: str) -> None:
    """--resume leaves what has ended, runs the rest, and gives the evidence of an undisturbed run."""
    ended = {case.case_id for case in only_run(folder).cases if case.outcome == "passed"}
    before = len(acknowledged(folder))
    resume(folder, *arguments)
    run = only_run(folder)
    assert evidence_of(run) == undisturbed
    assert run.finished and not run.missing
    assert not ended & {entry["case"] for entry in acknowledged(folder)[before:]}
    check_nothing_lost(run, acknowledged(folder))


def lose_a_worker(
    folder: Path, undisturbed: Measured, rng: np.random.Generator, number: signal.Signals = signal.SIGKILL
) -> None:
    with running(folder, "-n", "2") as process:
        entries = wait_for_records(folder, int(rng.integers(1, RECORDS)))
        time.sleep(float(rng.uniform(0, 0.02)))
        os.kill(entries[int(rng.integers(len(entries)))]["pid"], number)
        release(folder)
        output = end_of(process)
    run = only_run(folder)
    check_nothing_lost(run, acknowledged(folder))
    outcomes = [case.outcome for case in run.cases]
    assert len(outcomes) == CASES, output
    # A worker that is killed between two cases was running none.
    assert outcomes.count("crashed") <= 1, output
    assert outcomes.count("crashed") + outcomes.count("passed") == CASES, output
    assert process.returncode == (1 if "crashed" in outcomes else 0), output
    assert "not properly terminated" in output.lower()
    check_resumed(folder, undisturbed, "-n", str(rng.integers(0, 3)))


def kill_the_controller(folder: Path, undisturbed: Measured, rng: np.random.Generator) -> None:
    with running(folder, "-n", str(rng.integers(0, 3))) as process:
        wait_for_records(folder, int(rng.integers(1, RECORDS)))
        time.sleep(float(rng.uniform(0, 0.02)))
        process.kill()
        release(folder)
        end_of(process)
    run = only_run(folder)
    check_nothing_lost(run, acknowledged(folder))
    assert not run.finished
    assert run.missing
    check_resumed(folder, undisturbed, "-n", str(rng.integers(0, 3)))


def at_a_random_moment(folder: Path, undisturbed: Measured, seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    if seed % 2:  # Ctrl-C that reaches a worker alone ends no run.
        lose_a_worker(project_in(folder), undisturbed, rng, signal.SIGINT if seed % 4 == 1 else signal.SIGKILL)
    else:
        kill_the_controller(project_in(folder), undisturbed, rng)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_kill_at_a_random_moment(tmp_path: Path, undisturbed: Measured, seed: int) -> None:
    at_a_random_moment(tmp_path, undisturbed, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 20))
def test_kill_at_more_random_moments(tmp_path: Path, undisturbed: Measured, seed: int) -> None:
    at_a_random_moment(tmp_path, undisturbed, seed)


def test_a_killed_worker_is_reported_with_its_case(tmp_path: Path, undisturbed: Measured) -> None:
    folder = project_in(tmp_path)
    with running(folder, "-n", "2", TOY_STAY="3") as process:
        first = wait_for_records(folder, 3)[2]
        os.kill(first["pid"], signal.SIGKILL)
        release(folder)
        output = end_of(process)
    run = only_run(folder)
    (crashed,) = [case for case in run.cases if case.outcome == "crashed"]
    assert f"crashed while running '{crashed.case_id}'" in output
    assert f"crashed while running '{crashed.case_id}'" in crashed.last.message
    assert crashed.last.metrics, "what the case had recorded before its worker died is kept"
    assert "1 failed, 13 passed" in output
    check_resumed(folder, undisturbed)


def test_a_run_that_still_goes_on_is_not_continued(tmp_path: Path, undisturbed: Measured) -> None:
    folder = project_in(tmp_path)
    with running(folder) as process:
        wait_for_records(folder, 12)
        refused = run_pytest(folder, "--resume", only_run(folder).run_id)
        process.kill()
        end_of(process)
    assert refused.code == 4 and "is being written by another process" in refused.output, refused.output
    check_resumed(folder, undisturbed)


def test_ctrl_c(tmp_path: Path, undisturbed: Measured) -> None:
    folder = project_in(tmp_path)
    with running(folder, "-n", "2", fresh=True, TOY_PAUSE="0.05") as process:
        wait_for_records(folder, 12)
        os.killpg(process.pid, signal.SIGINT)
        release(folder)
        output = end_of(process)
    assert process.returncode == 2, output
    run = only_run(folder)
    check_nothing_lost(run, acknowledged(folder))
    assert not run.finished and run.missing
    assert not [case for case in run.cases if case.outcome == "crashed"], output
    check_resumed(folder, undisturbed)


@pytest.mark.parametrize(
    ("workers", "to_all"), [("0", False), pytest.param("2", False, marks=pytest.mark.slow), ("2", True)]
)
def test_sigterm_writes_the_report(tmp_path: Path, undisturbed: Measured, workers: str, to_all: bool) -> None:
    folder = project_in(tmp_path)
    with running(folder, "-n", workers, fresh=workers == "0", TOY_PAUSE="0.05") as process:
        wait_for_records(folder, 12)
        # Batch systems differ: some tell the first process only, some all of them.
        os.killpg(process.pid, signal.SIGTERM) if to_all else process.terminate()
        release(folder)
        output = end_of(process)
    assert process.returncode == 143, output
    assert "SIGTERM received: the run can be continued with --resume" in output
    run = only_run(folder)
    check_nothing_lost(run, acknowledged(folder))
    assert run.missing and not [case for case in run.cases if case.outcome == "crashed"]
    assert (run.folder / "index.html").exists(), output
    check_resumed(folder, undisturbed)


SECOND_SIGNAL = """
import os, time
from pathlib import Path
from lm_audit.plugin.session import signals

signals.PATIENCE_S = 600.0

def pytest_keyboard_interrupt():
    Path("told").touch()
    until = time.monotonic() + 120
    while not os.path.exists("release") and time.monotonic() < until:
        time.sleep(0.01)
"""
"""The first signal is told until the second has been sent."""


SIGNALS = (
    (signal.SIGTERM, signal.SIGTERM, 143),
    (signal.SIGINT, signal.SIGINT, 2),
    (signal.SIGINT, signal.SIGTERM, 143),
)


@pytest.mark.parametrize(
    ("workers", "first", "second", "code"),
    [
        pytest.param(workers, *signals, marks=[] if workers == "02"[number % 2] else [pytest.mark.slow])
        for number, signals in enumerate(SIGNALS)
        for workers in ("0", "2")
    ],
)
def test_a_second_signal_neither_loses_the_page_nor_leaves_a_process(
    tmp_path: Path, workers: str, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    folder = project_in(tmp_path)
    with (folder / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(SECOND_SIGNAL)
    with running(folder, "-n", workers, TOY_PAUSE="0.05") as process:
        wait_for_records(folder, 12)
        process.send_signal(first)
        wait_for((folder / "told").exists, "the first signal to be told")
        process.send_signal(second)
        release(folder)
        output = end_of(process)  # And with it all processes of its group.
    assert process.returncode == code, output
    run = only_run(folder)
    assert (run.folder / "index.html").exists(), output
    assert run.metadata["exitstatus"] == code
    assert not run.finished and run.missing


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, in which a page has room."""
    where = tmp_path / "disk"
    where.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def test_disk_full(tmp_path: Path, small_disk: Path, undisturbed: Measured) -> None:
    folder = project_in(tmp_path)
    (small_disk / "ballast").write_bytes(b"x" * 1_016_000)
    full = run_pytest(folder, "--reports", str(small_disk), TOY_PAUSE="0")
    assert full.code == 1, full.output
    assert "No space left on device; everything recorded before is kept" in full.output
    (run_folder,) = small_disk.glob("*/ledger")
    check_full(folder, small_disk, run_folder.parent.name, undisturbed)


def check_full(folder: Path, reports: Path, run_id: str, undisturbed: Measured) -> None:
    from lm_audit.runstore.run import read_run

    before = read_run(reports / run_id)
    check_nothing_lost(before, acknowledged(folder))
    assert before.missing or [case for case in before.cases if case.outcome in ("error", "failed")]
    (reports / "ballast").unlink()
    resumed = run_pytest(folder, "--reports", str(reports), "--resume", run_id, TOY_PAUSE="0")
    assert resumed.code == 0, resumed.output
    after = read_run(reports / run_id)
    assert evidence_of(after) == undisturbed
    assert after.finished and not after.missing


def test_same_numbers_with_workers_as_without(tmp_path: Path) -> None:
    found = []
    for workers in ("0", "2"):
        (tmp_path / workers).mkdir()
        folder = project_in(tmp_path / workers, 3, MODEL_CASES)
        outcome = run_pytest(folder, "-n", workers, "--model", "tiny", "--device", "cpu", TOY_PAUSE="0")
        assert outcome.code == 0, outcome.output
        found.append(evidence_of(only_run(folder)))
    # By case id, so that these are the same too.
    assert len(found[0]) == 3 + MODEL_CASES
    assert found[0] == found[1]
