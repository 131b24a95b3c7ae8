"""Progress is shown on a terminal: what runs, items, rate and time left; never under -q, in CI or in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from lm_audit.plugin.progress.case_progress import CaseProgress, Reporter
from lm_audit.plugin.progress.progress_display import short_id
from tests.plugin.toy_audit import audit_project, run_pytest
from tests.plugin.toy_run import command, environment

LONG = """
import os, time
import pytest
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("first"), Case("second")])
def test_long(case, evidence):
    seen, until = os.environ.get("SEEN"), time.monotonic() + 120
    for step in range(14):
        evidence.progress(step, 14, tokens=step * 100)
        time.sleep(0.07 if case.id == "first" and not seen else 0)
    while case.id == "first" and seen and not os.path.exists(seen) and time.monotonic() < until:
        time.sleep(0.1)  # The case is as long as it takes to be shown.
        evidence.progress(step, 14, tokens=step * 100)
"""
HASTY = """
from lm_audit.plugin.progress import progress_display

progress_display.QUIET_S = 0.3
"""
"""The line comes sooner after other output than it does for users, so that cases may be shorter."""
SHOWN = (rb"test_long\[first\]", rb"\d+/14", rb"\d+ tokens/s", rb"left")


def hasty_project(folder: Path) -> Path:
    project = audit_project(folder, LONG)
    with (project / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(HASTY)
    return project


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """The output of pytest on a pseudo-terminal; where all of ``SHOWN`` has come, the file ``seen`` is made."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm", "CI": "", "COLUMNS": "140"} | variables
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=environment(**variables), stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    output, end = b"", time.monotonic() + 300
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.5)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
        if all(re.search(pattern, output) for pattern in SHOWN):
            (folder / "seen").touch()
    process.wait(timeout=120)
    os.close(ours)
    return output.decode(errors="replace")


@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.slow), ("-n", "2")], ids=["serial", "parallel"])
def test_a_long_case_shows_how_far_it_is(tmp_path: Path, workers: tuple[str, ...]) -> None:
    output = on_a_terminal(hasty_project(tmp_path), *workers, SEEN="seen")
    assert [pattern for pattern in SHOWN if not re.search(pattern, output.encode())] == []
    assert "2 passed" in output
    assert not list(tmp_path.glob("reports/*/progress"))


@pytest.mark.parametrize(
    ("arguments", "variables"), [pytest.param(("-q",), {}, marks=pytest.mark.slow), ((), {"CI": "true"})]
)
def test_it_is_quiet_where_nobody_watches(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str]
) -> None:
    output = on_a_terminal(hasty_project(tmp_path), *arguments, **variables)
    assert "tokens/s" not in output
    assert "2 passed" in output


def test_it_is_quiet_in_a_pipe(tmp_path: Path) -> None:
    done = run_pytest(hasty_project(tmp_path), "-k", "first")
    assert done.counts["passed"] == 1
    assert "tokens/s" not in done.output and "\x1b[1A" not in done.output


def test_the_rate_is_that_of_the_current_call() -> None:
    progress = CaseProgress()
    progress.start("t.py::x[a]")
    assert progress.rate(time.time()) is None
    progress.update(1, 10, 100)
    assert progress.rate(progress.since + 2.0) == 50
    since = progress.since
    progress.update(5, 10, 400)
    assert progress.since == since
    progress.update(0, 7, 0)
    assert progress.rate(progress.since + 1.0) is None


def test_of_a_server_requests_a_second_and_tokens_are_told() -> None:
    progress = CaseProgress()
    progress.start("t.py::x[a]")
    progress.served = True
    assert progress.speed(time.time()) == ""
    progress.update(0, 500, 0)
    progress.update(300, 500, 12_345)
    assert progress.speed(progress.since + 2.0) == "150.0 requests/s, 12,345 tokens"
    progress.start("t.py::x[b]")
    progress.update(0, 5, 0)
    progress.update(1, 5, 100)
    assert progress.speed(progress.since + 2.0) == "50 tokens/s", "the next case may be on a model of this machine"


def test_a_worker_leaves_its_progress_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "gw0.json"
    reporter = Reporter(file)
    reporter.start("t.py::x[a]")
    assert '"case": "t.py::x[a]"' in file.read_text()
    reporter.stop()
    assert '"case": ""' in file.read_text()
    Reporter(tmp_path / "absent" / "gw0.json").start("x")


def test_ids_are_shortened_to_what_tells_cases_apart() -> None:
    assert short_id("evals/test_bias.py::test_x[tiny@cpu-a::b]") == "test_x[tiny@cpu-a::b]"
    assert short_id("a.py::TestX::test_y") == "test_y"
    assert len(short_id("a.py::t[" + "x" * 99 + "]")) == 60
