"""Warm processes: one for all who ask in a run of the tests, and calls that are waited for or not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.plugin.toy_run import environment, run_pytest, start_pytest, write_project
from tests.plugin.warm_start import LIVING, WarmStarter

WAITING = """
import time
from pathlib import Path

def test_waits():
    Path("here").touch()
    until = time.monotonic() + 120
    while not Path("go").exists() and time.monotonic() < until:
        time.sleep(0.01)

def test_other():
    print("told")
"""


def test_who_asks_in_one_run_is_given_forks_of_one_process(tmp_path: Path) -> None:
    write_project(tmp_path, test_toy="def test_a(): pass\n")
    for starter in (WarmStarter(package=True), WarmStarter(package=True), WarmStarter(package=False)):
        code, output = starter.run(["-p", "no:cacheprovider"], tmp_path, environment(), 600.0)
        assert code == 0 and "1 passed" in output, output
    assert len(LIVING) <= 1, "none where another worker has started it"


def test_a_call_may_go_on_while_others_are_made(tmp_path: Path) -> None:
    write_project(tmp_path, test_toy=WAITING)
    process = start_pytest(tmp_path, "-s")
    assert process.poll() is None and os.getpgid(process.pid) == process.pid
    assert run_pytest(tmp_path, "-k", "test_other").counts == {"passed": 1, "deselected": 1}
    (tmp_path / "go").touch()
    output, _ = process.communicate(600.0)
    assert process.returncode == process.poll() == 0 and "2 passed" in output and "told" in output


def test_a_call_that_is_ended_says_by_what(tmp_path: Path) -> None:
    write_project(tmp_path, test_toy=WAITING)
    process = start_pytest(tmp_path)
    process.kill()
    assert process.communicate(600.0)[1] is None and process.returncode == -signal.SIGKILL
    process.terminate()  # It has ended: nobody is meant.
