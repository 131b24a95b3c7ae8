"""``--case-timeout``: a case that hangs is ended and reported, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.toy_audit import audit_project, last_run, outcomes
from tests.plugin.toy_run import run_fresh

HANGING = """
import ctypes, os, signal, time
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

def sleep():
    try:
        time.sleep(120)
    except Exception as error:  # What a training loop does.
        raise ValueError("swallowed") from error

def native():
    # Holds the interpreter's lock and hears no signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.PyDLL(None).sleep(120)

def unlocked():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.CDLL(None).sleep(120)

@pytest.mark.bias
@cases([Case("a"), Case("hang"), Case("c"), Case("d")])
def test_gap(case, evidence, request):
    evidence.metric("bias.gap", Estimate(0.5, 0.4, 0.6, n=100))
    if case.id == "hang" and os.environ.get("HANG"):
        from lm_audit.plugin.session.case_timeout import _WATCH
        request.config.stash[_WATCH].begin(request.node)
        globals()[os.environ["HANG"]]()
"""
STOPPED = """
import signal
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    from lm_audit.plugin.session.case_timeout import _WATCH
    if _WATCH in item.config.stash:
        watch = item.config.stash[_WATCH]
        assert watch.item is item and signal.getitimer(signal.ITIMER_REAL)[0] > 0
        watch.end()
"""
"""The clocks run from the set-up on; here they begin anew where a case hangs, since all else may take its time."""


def hanging_project(folder: Path) -> Path:
    project = audit_project(folder, HANGING)
    with (project / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(STOPPED)
    return project


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_case_that_hangs_fails_and_the_run_goes_on(tmp_path: Path, workers: str) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "-n", workers, "--case-timeout", "0.5", HANG="sleep")
    assert (done.code, done.counts) == (1, {"passed": 3, "failed": 1})
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "hang": "failed", "c": "passed", "d": "passed"}
    hung = next(case for case in run.cases if "[hang]" in case.case_id)
    assert "ran longer than --case-timeout 0.5 s" in hung.last.message and hung.last.cause == "timeout"
    assert hung.last.metrics, "what it had measured is kept"
    again = run_fresh(tmp_path, "--resume", run.run_id)
    assert again.counts == {"passed": 1, "resumed": 3}


def test_a_worker_that_hangs_in_native_code_is_replaced(tmp_path: Path) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "-n", "1", "--case-timeout", "0.5", HANG="native")
    assert (done.code, done.counts) == (1, {"passed": 3, "failed": 1}), done.output
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "hang": "crashed", "c": "passed", "d": "passed"}
    hung = next(case for case in run.cases if "[hang]" in case.case_id)
    assert "ran longer than --case-timeout 0.5 s" in hung.last.message
    assert "in native" in hung.last.message and hung.last.cause == "timeout"
    assert "--case-timeout 0.5 s" in done.output
    assert run.finished and not (run.folder / "hangs").exists()
    assert run_fresh(tmp_path, "--resume", run.run_id).counts == {"passed": 1, "resumed": 3}


def test_without_workers_a_hang_in_native_code_ends_the_run_with_a_page_and_advice(tmp_path: Path) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "--case-timeout", "0.5", HANG="unlocked")
    assert done.code == 124
    run = last_run(tmp_path)
    assert f"--resume {run.run_id} -n 1" in done.output
    assert outcomes(run) == {"a": "passed", "hang": "crashed"}
    assert (run.folder / "index.html").exists() and not run.finished
    assert run_fresh(tmp_path, "--resume", run.run_id).counts == {"passed": 3, "resumed": 1}


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, limit: str) -> None:
    done = run_fresh(hanging_project(tmp_path), f"--case-timeout={limit}")
    assert done.code == 4 and "seconds above 0" in done.output
