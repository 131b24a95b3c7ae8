"""``--case-timeout``: a case that hangs is ended and reported, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.plugin.session import case_timeout
from tests.plugin.toy_audit import audit_project, last_run, outcomes
from tests.plugin.toy_run import run_fresh, run_pytest

HANGING = """
import ctypes, os, signal, subprocess, threading, time
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.plugin.session import left_behind
from lm_audit.stats.estimate import Estimate

left_behind.THREADS_S = 0.1

def sleep():
    threading.Thread(target=time.sleep, args=(120,)).start()  # Python waits for it when it ends.
    try:
        subprocess.Popen(["sleep", "120"]).wait()
    except Exception as error:  # What a training loop does.
        raise ValueError("swallowed") from error

def linger():
    time.sleep(60)
    open("waited", "w").close()

def native():
    # Holds the interpreter's lock.
    ctypes.PyDLL(None).sleep(120)

def unlocked():
    ctypes.CDLL(None).sleep(120)

@pytest.mark.bias
@cases([Case("a"), Case("hang"), Case("c"), Case("d")])
def test_gap(case, evidence, request):
    evidence.metric("bias.gap", Estimate(0.5, 0.4, 0.6, n=100))
    if case.id == "hang" and os.environ.get("LEAVE"):
        threading.Thread(target=linger).start()
    if case.id == "hang" and os.environ.get("HANG"):
        from lm_audit.plugin.session.case_timeout import _WATCH
        watch = request.config.stash[_WATCH]
        assert watch.item is request.node, "its clocks would run"
        if os.environ["HANG"] != "sleep":  # Native code hears no signal.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        watch.begin_now(request.node)
        watch.children = left_behind.Children()
        globals()[os.environ["HANG"]]()
"""
HELD = """
import os

def pytest_collection_finish():
    import threading
    from lm_audit.plugin.session import case_timeout

    def noted(watch, item):
        watch.item, watch._threads = item, set(threading.enumerate())

    watch = case_timeout._Watch
    watch.begin, watch.begin_now = noted, watch.begin
    case_timeout.GRACE_S = float(os.environ.get("GRACE", case_timeout.GRACE_S))
"""
"""The clocks run from the set-up on; here they begin where a case hangs, since all else may take its time."""


def hanging_project(folder: Path) -> Path:
    project = audit_project(folder, HANGING)
    with (project / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(HELD)
    return project


@pytest.mark.parametrize("workers", ["2", pytest.param("0", marks=pytest.mark.slow)])
def test_a_case_that_hangs_fails_and_the_run_goes_on(tmp_path: Path, workers: str) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "-n", workers, "--case-timeout", "0.5", HANG="sleep", GRACE="60")
    assert (done.code, done.counts) == (1, {"passed": 3, "failed": 1}), done.output
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "hang": "failed", "c": "passed", "d": "passed"}
    hung = next(case for case in run.cases if "[hang]" in case.case_id)
    assert "ran longer than --case-timeout 0.5 s" in hung.last.message and hung.last.cause == "timeout"
    assert hung.last.metrics, "what it had measured is kept"
    assert any(note.startswith("left behind when its time was up, and ended: sleep (") for note in hung.last.notes)
    again = run_pytest(tmp_path, "--resume", run.run_id)
    assert again.counts == {"passed": 1, "resumed": 3}


def test_a_worker_that_hangs_in_native_code_is_replaced(tmp_path: Path) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "-n", "1", "--case-timeout", "0.5", HANG="native", GRACE="0.3")
    assert (done.code, done.counts) == (1, {"passed": 3, "failed": 1}), done.output
    run = last_run(tmp_path)
    assert outcomes(run) == {"a": "passed", "hang": "crashed", "c": "passed", "d": "passed"}
    hung = next(case for case in run.cases if "[hang]" in case.case_id)
    assert "ran longer than --case-timeout 0.5 s" in hung.last.message
    assert "in native" in hung.last.message and hung.last.cause == "timeout"
    assert "--case-timeout 0.5 s" in done.output
    assert run.finished and not (run.folder / "hangs").exists()
    assert run_pytest(tmp_path, "--resume", run.run_id).counts == {"passed": 1, "resumed": 3}


def test_without_workers_a_hang_in_native_code_ends_the_run_with_a_page_and_advice(tmp_path: Path) -> None:
    hanging_project(tmp_path)
    done = run_fresh(tmp_path, "--case-timeout", "0.5", HANG="unlocked", GRACE="0.3")
    assert done.code == 124
    run = last_run(tmp_path)
    assert f"--resume {run.run_id} -n 1" in done.output
    assert outcomes(run) == {"a": "passed", "hang": "crashed"}
    assert (run.folder / "index.html").exists() and not run.finished
    assert run_pytest(tmp_path, "--resume", run.run_id).counts == {"passed": 3, "resumed": 1}


def test_a_thread_that_a_case_left_has_the_time_of_a_case(tmp_path: Path) -> None:
    done = run_pytest(hanging_project(tmp_path), "--case-timeout", "0.2", LEAVE="1")
    assert (done.code, done.counts) == (0, {"passed": 4}), done.output
    assert not (tmp_path / "waited").exists(), "Python has waited for it"


def test_a_case_that_was_told_has_time_to_fail(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine its traceback and what it leaves take longer than it may be deaf."""
    given: list[float] = []
    watch = case_timeout._Watch(pytestconfig, 5.0)
    monkeypatch.setattr(watch, "_end_process_in", given.append)
    watch.inside = True
    with pytest.raises(pytest.fail.Exception, match="longer than --case-timeout 5 s"):
        watch._raise(14, None)
    with pytest.raises(pytest.fail.Exception):  # What it does then hangs too: it is told again, and has no more time.
        watch._raise(14, None)
    watch.end()
    assert given == [case_timeout.HEARD_S] and case_timeout.HEARD_S >= 60


BETWEEN = """
import time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if "[hang]" in item.nodeid and call.when == "{phase}":
        from lm_audit.plugin.session.case_timeout import _WATCH
        watch = item.config.stash[_WATCH]
        watch.begin_now(item)
        until = time.monotonic() + 60
        while not watch.late and time.monotonic() < until:
            time.sleep(0.01)
    return report
"""


@pytest.mark.parametrize(
    ("phase", "outcome"), [("setup", "failed"), pytest.param("call", "passed", marks=pytest.mark.slow)]
)
def test_a_time_that_is_up_between_two_phases_does_not_end_the_run(tmp_path: Path, phase: str, outcome: str) -> None:
    hanging_project(tmp_path)
    with (tmp_path / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(BETWEEN.replace("{phase}", phase))
    done = run_fresh(tmp_path, "--case-timeout", "0.3", GRACE="60")
    assert "INTERNALERROR" not in done.output
    assert outcomes(last_run(tmp_path)) == {"a": "passed", "hang": outcome, "c": "passed", "d": "passed"}, done.output
    hung = next(case for case in last_run(tmp_path).cases if "[hang]" in case.case_id)
    assert hung.last.cause == ("timeout" if outcome == "failed" else None)


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, limit: str) -> None:
    done = run_fresh(hanging_project(tmp_path), f"--case-timeout={limit}")
    assert done.code == 4 and "seconds above 0" in done.output
