"""Kill, interrupt, fill the disk: every record is on disk, a crash costs one case, and resuming finishes the rest."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from lm_audit.runstore import read_run
from tests.plugin.toy_audit import AUDIT, ONLY_A, audit_project, last_run, measured, outcomes, run_pytest, runs
from tests.plugin.toy_run import start_pytest
from tests.plugin.warm_start import WarmProcess

STEPS = '''
import json, os, time
from pathlib import Path
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

LOG = Path(__file__).with_name("truth.jsonl")


def truth(**entry):
    """What is certainly recorded: written after the call that records it has returned."""
    with LOG.open("a") as file:
        file.write(json.dumps(entry) + "\\n")


def leash():
    """Who is going to be killed comes no further than so many lines, and cannot end before."""
    most, until = int(os.environ.get("LEASH", "9999")), time.monotonic() + 120
    while LOG.exists() and LOG.read_bytes().count(b"\\n") >= most and time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.bias
@cases([Case(f"c{i}", {"i": i}) for i in range(12)])
def test_steps(case, evidence):
    for step in range(4):
        time.sleep(0.015)
        leash()
        evidence.metric(f"bias.step{step}", Estimate(case.params["i"] + step / 10))
        truth(case=case.id, metric=f"bias.step{step}")
        evidence.rows([{"item": f"{step}", "x": step}])
'''


def wait_for(condition: object, process: WarmProcess, limit: float = 300) -> None:
    end = time.monotonic() + limit
    while time.monotonic() < end and process.poll() is None and not condition():  # type: ignore[operator]
        time.sleep(0.01)


def check_nothing_lost(folder: Path) -> None:
    """Every metric whose recording returned is in some attempt of its case; nothing is damaged but torn ends."""
    run = last_run(folder)
    recorded = {
        (case.case_id.partition("[")[2][:-1], name)
        for case in run.cases
        for attempt in (*case.earlier, case.last)
        for name in attempt.metrics
    }
    for line in (folder / "truth.jsonl").read_text().splitlines():
        entry = json.loads(line)
        assert (entry["case"], entry["metric"]) in recorded
    assert all("torn" in line.reason for line in run.damaged)


def finished_by_resuming(folder: Path, kill: object, kills: int, *arguments: str) -> None:
    """Kill the run, and each resumption of it, at random moments; then let one finish."""
    rng = random.Random(20)
    leashes = [str(44 * (k + 1) // kills) for k in range(kills)]  # Of 48 lines that a whole run writes.
    process = start_pytest(folder, "-q", *arguments, LEASH=leashes[0])
    for following in (*leashes[1:], "9999"):
        done = len(list((folder / "reports").glob("*/ledger/*.jsonl")))
        wait_for(lambda done=done: len(list((folder / "reports").glob("*/ledger/*.jsonl"))) > done, process)
        time.sleep(rng.uniform(0, 0.25))
        kill(process)  # type: ignore[operator]
        process.communicate(timeout=300)
        if (folder / "truth.jsonl").exists():
            check_nothing_lost(folder)
        resume = ("--resume", str(runs(folder)[-1])) if runs(folder) else ()
        process = start_pytest(folder, "-q", *arguments, *resume, LEASH=following)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output


def kill_group(process: WarmProcess) -> None:
    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_may_be_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for folder in (broken, whole):
        folder.mkdir()
        audit_project(folder, STEPS)
    finished_by_resuming(broken, kill_group, kills)
    assert run_pytest(whole).code == 0
    assert len(runs(broken)) == 1
    assert measured(last_run(broken)) == measured(last_run(whole))
    assert last_run(broken).finished and not last_run(broken).missing


def test_a_worker_that_dies_costs_one_case(tmp_path: Path) -> None:
    audit_project(tmp_path)
    done = run_pytest(tmp_path, "-n", "2", STOP="b", SIGNAL="SIGKILL")
    assert done.code == 1
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "b": "crashed", "c": "passed"}
    crashed = next(case for case in run.cases if case.outcome == "crashed")
    assert "crashed" in crashed.last.message and crashed.audit == "bias" and crashed.fingerprint
    assert run.finished and not run.damaged
    resumed = run_pytest(tmp_path, "--resume", run.run_id)
    assert resumed.code == 0
    assert resumed.counts == {"passed": 1, "resumed": 2}
    again = last_run(tmp_path)
    assert outcomes(again) == {"a": "passed", "b": "passed", "c": "passed"}
    assert [attempt.outcome for attempt in next(c for c in again.cases if "[b]" in c.case_id).earlier] == ["crashed"]


@pytest.mark.parametrize(
    ("bad", "phase"),
    [
        pytest.param(False, "teardown", id="passed-teardown", marks=pytest.mark.slow),
        pytest.param(True, "call", id="failed-call"),
        pytest.param(False, "call", id="passed-call", marks=pytest.mark.slow),
        pytest.param(True, "teardown", id="failed-teardown", marks=pytest.mark.slow),
    ],
)
def test_a_worker_that_dies_after_the_end_of_a_case_costs_nothing(tmp_path: Path, phase: str, bad: bool) -> None:
    audit_project(tmp_path, AUDIT + ('\n    assert case.id != "b", "too large"\n' if bad else ""))
    # It has recorded the end, and dies before the controller is told of one phase, or of two.
    with (tmp_path / "conftest.py").open("a") as handle:
        handle.write(f"""
import os, time, pytest
from lm_audit.plugin.record import attempts as recording

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if os.environ.get("PYTEST_XDIST_WORKER") and "[b]" in item.nodeid and call.when == "call" == "{phase}":
        recording._end(recording.running_attempt(item), report)
        os.kill(os.getpid(), 9)
    return report

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if os.environ.get("PYTEST_XDIST_WORKER") and "[b]" in report.nodeid and report.when == "teardown":
        time.sleep(0.3)
        os.kill(os.getpid(), 9)
""")
    done = run_pytest(tmp_path, "-n", "2")
    assert outcomes(last_run(tmp_path)) == {"a": "passed", "b": "failed" if bad else "passed", "c": "passed"}
    assert done.code == int(bad), done.output
    assert (done.counts["passed"], done.counts.get("failed", 0)) == ((2, 1) if bad else (3, 0))
    assert "crashed while running" not in done.output and (not bad or "too large" in done.output)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 2), ("SIGTERM", 143)])
def test_an_interrupted_run_still_has_its_report(tmp_path: Path, name: str, code: int) -> None:
    audit_project(tmp_path)
    done = run_pytest(tmp_path, STOP="b", SIGNAL=name)
    assert done.code == code
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "b": "unfinished"}
    assert [case_id[-3:] for case_id in run.missing] == ["[b]", "[c]"]
    assert not run.finished
    assert (run.folder / "index.html").exists()
    assert "index.html" in done.output
    assert name == "SIGINT" or "SIGTERM received: the run can be continued with --resume" in done.output
    assert run_pytest(tmp_path, "--resume", run.run_id).code == 0
    assert set(outcomes(last_run(tmp_path)).values()) == {"passed"}


def test_a_full_disk_is_told_and_loses_nothing_that_was_written(tmp_path: Path) -> None:
    source = AUDIT.replace(
        'evidence.parameter("seed", audit_seed)',
        """evidence.parameter("seed", audit_seed)
    if case.id == "b":
        import resource
        size = max(p.stat().st_size for p in __import__("pathlib").Path("reports").glob("*/ledger/*.jsonl"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))""",
    )
    audit_project(tmp_path, source)
    done = run_pytest(tmp_path)
    assert done.code == 1
    assert "StoreError: cannot write to" in done.output
    assert "everything recorded before is kept" in done.output
    run = last_run(tmp_path)
    assert outcomes(run)["a"] == "passed"
    assert next(case for case in run.cases if "[a]" in case.case_id).last.metrics["bias.gap"].value == 0.2
    assert run_pytest(audit_project(tmp_path), "--resume", run.run_id).code == 0
    assert set(outcomes(last_run(tmp_path)).values()) == {"passed"}


def test_an_unusable_reports_folder_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    audit_project(tmp_path)
    (tmp_path / "file").write_text("")
    for arguments in (("--reports", "file/x"), ("--reports", "file/x", "-n", "2")):
        done = run_pytest(tmp_path, *arguments)
        assert done.code == 4
        assert "cannot write reports under" in done.output
        assert "name a writable folder with --reports DIR" in done.output
    (tmp_path / "reports").write_text("")
    for workers in ((), ("-n", "2")):
        done = run_pytest(tmp_path, *workers)
        assert done.code == 4 and "passed" not in done.output
        assert "cannot write reports under" in done.output


@pytest.mark.parametrize(("error", "code"), [
    ("RuntimeError('no ink')", 0),
    pytest.param("OSError(28, 'No space left on device')", 1, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_report_that_cannot_be_written_costs_no_data(tmp_path: Path, error: str, code: int) -> None:
    audit_project(tmp_path)
    breaker = f"from lm_audit.report.writing import of_run\ndef broken(folder):\n    raise {error}\n"
    with (tmp_path / "conftest.py").open("a") as handle:
        handle.write(breaker + "of_run.write_all = broken\n")
    done = run_pytest(tmp_path)
    assert done.code == code
    assert f"the report could not be written ({error.partition('(')[0]}: " in done.output
    assert "lm-audit report" in done.output
    assert len(last_run(tmp_path).cases) == 3


def test_plain_tests_make_no_run(tmp_path: Path) -> None:
    audit_project(tmp_path, "def test_x(): pass\n")
    assert run_pytest(tmp_path).code == 0
    assert run_pytest(tmp_path, "-n", "2").code == 0
    assert not list(tmp_path.glob("reports/*/ledger"))


def test_the_run_says_how_it_was_made(tmp_path: Path) -> None:
    audit_project(tmp_path)
    run_pytest(tmp_path, "--seed", "5", "--model", "mine=tiny", "--device", "cpu", ONLY_A)
    run = last_run(tmp_path)
    options = run.metadata["options"]
    assert run.metadata["command"][0] == "pytest" and run.metadata["command"][-1] == ONLY_A
    assert (options["seed"], options["size"], options["models"]) == (5, "smoke", {"mine": "tiny"})
    assert run.metadata["versions"]["torch"] and run.metadata["exitstatus"] == 0
    assert run.cases[0].last.parameters == {"seed": 5}
    lines = (tmp_path / "reports" / "run_metadata.jsonl").read_text().splitlines()
    assert [json.loads(line)["run_id"] for line in lines] == [run.run_id]
    assert read_run(run.folder).planned == tuple(case.case_id for case in run.cases)
