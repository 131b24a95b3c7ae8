"""Signals of any mix end a run once, and a terminal that has gone costs neither its page nor its evidence."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path

import pytest

from lm_audit.plugin.session.signals import Listening, LosingWorker
from tests.plugin.acknowledging_audit import acknowledged, audit_source, check_nothing_lost, only_run
from tests.plugin.record.test_kill_and_resume import (
    TIMEOUT_S,
    group_lives,
    release,
    wait_for,
    wait_for_records,
)
from tests.plugin.toy_run import command, environment, run_pytest, write_project

ALL = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def listening() -> Iterator[Listening]:
    """Listens in this process, whatever the one that started it had ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ALL}
    made = Listening()
    try:
        yield made
    finally:
        made.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_case_forks_ends_at_a_signal_as_it_would_without_a_run(listening: Listening, beside: bool) -> None:
    ends: list[int] = []

    def fork() -> None:
        if (child := os.fork()) == 0:
            signal.raise_signal(signal.SIGTERM)
            os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    listening.looping = False  # From here on signals are only told.
    if beside:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(fork).result()
    else:
        fork()
    assert ends == [-signal.SIGTERM]


@pytest.mark.parametrize(
    "mix", [*product(ALL, repeat=2), *permutations(ALL)], ids=lambda mix: "-".join(s.name for s in mix)
)
def test_the_first_signal_of_a_mix_stops_the_cases_and_none_the_end(
    listening: Listening, mix: tuple[signal.Signals, ...]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(mix[0])
    for number in mix[1:]:
        signal.raise_signal(number)
    assert listening.exit_code == next((CODES[number] for number in mix if number in CODES), 2)


@pytest.mark.parametrize(("hears", "number"), [*((Listening, number) for number in ALL), (LosingWorker, signal.SIGINT)])
def test_a_signal_that_got_lost_ends_the_cases_before_the_next(
    listening: Listening, hears: type[Listening | LosingWorker], number: signal.Signals
) -> None:
    heard = listening if hears is Listening else hears()
    heard.pytest_runtest_logstart()
    with suppress(KeyboardInterrupt):  # As a finaliser does, whose exceptions go nowhere.
        signal.raise_signal(number)
    with pytest.raises(KeyboardInterrupt):
        heard.pytest_runtest_logstart()
    listening.looping = False
    listening.pytest_runtest_logstart()


LOST = """
import os
import signal

from lm_audit.plugin import Case, cases


class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            pass


@cases([Case(f"c{index}", {}) for index in range(2)])
def test_interrupted(case):
    Lost()
"""


def test_a_signal_that_arrives_in_a_finaliser_ends_the_run(tmp_path: Path) -> None:
    outcome = run_pytest(write_project(tmp_path, test_toy=LOST))
    assert outcome.code == 143, outcome.output
    run = only_run(tmp_path)
    assert [case.outcome for case in run.cases] == ["passed"] and len(run.missing) == 1
    assert (run.folder / "index.html").exists()


@pytest.mark.parametrize("number", ALL)
def test_a_signal_while_the_end_is_written_is_only_told(listening: Listening, number: signal.Signals) -> None:
    listening.looping = False
    signal.raise_signal(number)
    assert listening.exit_code == CODES.get(number, 2)


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As nohup does.
    try:
        made = Listening()
        signal.raise_signal(signal.SIGHUP)
        assert made.exit_code is None
        made.stop()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def of_a_terminal() -> None:
    """In the new process: its standard input is the terminal that controls it, and nothing of ``nohup`` is left."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("workers", ["2", pytest.param("0", marks=pytest.mark.slow)])
def test_a_terminal_that_is_closed(tmp_path: Path, workers: str) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(14))
    near, far = pty.openpty()
    # The size of a terminal's buffer holds what is written until it is closed.
    process = subprocess.Popen(
        command("-n", workers, "-q"),
        cwd=folder,
        env=environment(TOY_RELEASE=str(folder / "release"), TOY_PAUSE="0.05", TERM="xterm"),
        stdin=far,
        stdout=far,
        stderr=far,
        start_new_session=True,
        preexec_fn=of_a_terminal,
    )
    try:
        os.close(far)
        wait_for_records(folder, 12)
        os.close(near)
        release(folder)
        code = process.wait(TIMEOUT_S)
        wait_for(lambda: not group_lives(process.pid), "the workers to leave")
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    run = only_run(folder)
    assert code == run.metadata["exitstatus"] == 129
    check_nothing_lost(run, acknowledged(folder))
    assert run.missing and not run.finished and not [case for case in run.cases if case.outcome == "crashed"]
    assert (run.folder / "index.html").exists()


def test_output_that_nobody_reads_any_more_costs_no_run(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(14))
    process = subprocess.Popen(
        command("-v"),
        cwd=folder,
        env=environment(TOY_RELEASE=str(folder / "release")),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    wait_for_records(folder, 12)
    process.stdout.close()
    release(folder)
    assert process.wait(TIMEOUT_S) == 0
    run = only_run(folder)
    assert run.finished and len(run.cases) == 14
    assert (run.folder / "index.html").exists()


NO_LINES = """
import os
import signal

from lm_audit.plugin import Case, cases


def of_no_line():
    os.kill(os.getpid(), signal.SIGNAL)
    while True:
        pass


# What is here is one instruction in thousands elsewhere: it belongs to no line.
of_no_line.__code__ = of_no_line.__code__.replace(co_linetable=b"")


@cases([Case(f"c{index}", {}) for index in range(2)])
def test_interrupted(case):
    try:
        of_no_line()
    except KeyboardInterrupt as error:
        raise error from error.with_traceback(error.__traceback__)
"""


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 2)])
def test_an_interrupt_where_the_source_has_no_line(tmp_path: Path, number: str, code: int) -> None:
    folder = write_project(tmp_path, test_toy=NO_LINES.replace("SIGNAL", number))
    outcome = run_pytest(folder)
    assert outcome.code == code, outcome.output
    assert "INTERNALERROR" not in outcome.output
    run = only_run(folder)
    assert run.metadata["exitstatus"] == code and (run.folder / "index.html").exists()
