"""What a case whose time was up has started is ended, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from lm_audit.plugin.session import left_behind
from lm_audit.plugin.session.left_behind import Children, end_left_by

Start = Callable[..., "subprocess.Popen[bytes]"]
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes, which are killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*command: str, **variables: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_what_is_new_is_ended_with_what_it_started(start: Start) -> None:
    before = start("sleep", "60")
    children = Children()
    new = start("sh", "-c", "sleep 60 & echo $!; wait")
    assert new.stdout is not None
    grandchild = int(new.stdout.readline())
    ended = children.end_new()
    # A grandchild that has not become what it is to be yet bears its parent's name.
    assert f"sh ({new.pid})" in ended and any(one.endswith(f"({grandchild})") for one in ended)
    assert new.wait(10) != 0 and before.poll() is None
    assert children.end_new() == []


def test_one_that_does_not_listen_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "PATIENCE_S", 0.05)
    children = Children()
    deaf = start("sh", "-c", DEAF)
    assert deaf.stdout is not None and deaf.stdout.readline() == b"ready\n"
    children.end_new()
    assert deaf.wait(10) == -9


def test_what_has_ended_already_is_not_told(start: Start) -> None:
    children = Children()
    over = start("true")
    until = time.monotonic() + 10
    while psutil.Process(over.pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.005)
    assert children.end_new() == []


def test_what_python_keeps_for_itself_stays(start: Start) -> None:
    children = Children()
    kept = start(sys.executable, "-S", "-c", "input()", "from multiprocessing.resource_tracker import main")
    assert children.end_new() == [] and kept.poll() is None


@pytest.mark.parametrize(("run", "current", "ends"), [
    ("r1", "test_a.py::test_x[c] (call)", True),
    ("r1", "test_a.py::test_x[c] (setup)", False),  # perhaps of a session's fixture
    ("r1", "test_a.py::test_x[d] (call)", False),
    ("r2", "test_a.py::test_x[c] (call)", False),
])  # fmt: skip
def test_of_a_dead_worker_its_test_function_s_are_ended(start: Start, run: str, current: str, ends: bool) -> None:
    left = start("sleep", "60", PYTEST_XDIST_TESTRUNUID=run, PYTEST_CURRENT_TEST=current)
    assert end_left_by("r1", "test_a.py::test_x[c]") == ([f"sleep ({left.pid})"] if ends else [])
    assert (left.poll() is None) != ends or left.wait(10) != 0
