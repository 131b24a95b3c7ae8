"""SIGTERM and SIGHUP end a run like Ctrl-C does: no further case, the reports written, exit code 143 or 129.

Batch systems send the first some time before they kill (SLURM, Kubernetes, CI), a terminal that is closed or a lost
connection the second. Without this Python would die at once; the evidence would be safe, but no report would say so.
A worker that one of them reaches alone counts as crashed: SIGTERM and SIGHUP keep their default there, and after Ctrl-C
(SIGINT) it tears down what its fixtures hold and then dies of it. ``nohup`` has SIGHUP ignored, and it stays so.

From the first signal on, until the end of the run is on disk, further ones are not heeded: schedulers repeat theirs,
and people press Ctrl-C twice. Only Ctrl-C pressed again after :data:`PATIENCE_S` gets through. Where code of the case
kept the first from getting through (a finaliser, ``except BaseException``), it does so before the next case.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import Any

import pytest

ENDING = (signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 10.0
"""How long the end of a run may take before a further Ctrl-C breaks it off."""


class Terminated(KeyboardInterrupt):
    """A signal of :data:`ENDING` arrived.

    No ``Exception``, or a training loop that turns those into errors of its own would go on.
    """


class Listening:
    """Hears SIGTERM, SIGHUP and Ctrl-C from the first case to the end of the process's session."""

    def __init__(self) -> None:
        self.looping = True
        self.exit_code: int | None = None
        """What the process must end with because of a signal, None without one."""
        self._since: float | None = None
        self._stop: KeyboardInterrupt | None = None
        """What was raised to end the cases."""
        ending = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
        self._before: list[tuple[int, Any]] = [
            *((number, signal.signal(number, self._terminate)) for number in ending),
            (signal.SIGINT, signal.signal(signal.SIGINT, self._interrupt)),
        ]
        # What a case forks has no run to end: at a SIGTERM that is not heeded there, it would outlive whoever ends it.
        os.register_at_fork(after_in_child=self.stop)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        first = self._since is None
        if self.exit_code in (None, pytest.ExitCode.INTERRUPTED):
            self.exit_code = 128 + number
        self._since = self._since or time.monotonic()
        # While the end is written there is nothing left to stop; it only has to be said in the exit code.
        if first and self.looping:
            self._stop = Terminated(f"{signal.Signals(number).name} received: the run can be continued with --resume")
            raise self._stop

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        first = self._since is None
        if self.exit_code is None:
            self.exit_code = int(pytest.ExitCode.INTERRUPTED)
        self._since = self._since or time.monotonic()
        if (first and self.looping) or time.monotonic() - self._since > PATIENCE_S:
            self._stop = KeyboardInterrupt()
            raise self._stop

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A case would begin though a signal has ended them: it got lost on its way."""
        if self.looping and self._stop is not None:
            raise self._stop.with_traceback(None)

    def stop(self) -> None:
        """Give the signals back."""
        for number, handler in self._before:
            signal.signal(number, handler)
        self._before = []


class LosingWorker:
    """Hears Ctrl-C in a worker: xdist would end the whole run for it, though nobody may have told its controller."""

    def __init__(self) -> None:
        self.heard = False
        self._before: Any = signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        first, self.heard = not self.heard, True
        if first:
            raise KeyboardInterrupt

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """As in :class:`Listening`."""
        if self.heard:
            raise KeyboardInterrupt

    def die(self) -> None:
        """End as by the signal, if it came: the controller takes that for what it is, the loss of one worker."""
        signal.signal(signal.SIGINT, signal.SIG_DFL if self.heard else self._before)
        if self.heard:
            os.kill(os.getpid(), signal.SIGINT)


_LISTENING: pytest.StashKey[Listening] = pytest.StashKey()
_LOSING: pytest.StashKey[LosingWorker] = pytest.StashKey()


def signalled(config: pytest.Config) -> int | None:
    """The exit code that a signal demands, None where none arrived."""
    listening = config.stash.get(_LISTENING, None)
    return None if listening is None else listening.exit_code


def pytest_lm_audit_loop_begin(session: pytest.Session) -> None:
    """Listen while cases run and the run ends."""
    config = session.config
    if threading.current_thread() is not threading.main_thread():
        return
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None:
        config.stash[_LISTENING] = Listening()
        config.pluginmanager.register(config.stash[_LISTENING], "lm-audit-listening")
    elif not workerinput["lm_audit"]["remote"]:  # Sessions of a cluster are ended by their own processes.
        config.stash[_LOSING] = LosingWorker()
        config.pluginmanager.register(config.stash[_LOSING], "lm-audit-losing")


def pytest_lm_audit_loop_end(session: pytest.Session) -> None:
    """No case runs any more, so that a first signal has nothing to stop."""
    listening = session.config.stash.get(_LISTENING, None)
    if listening is not None:
        listening.looping = False


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit with the code that schedulers expect of a process that was terminated.

    pytest sets its own only after it has told of the interrupt, and a second one in between would leave it at 0.
    """
    code = signalled(session.config)
    if code is not None:
        session.exitstatus = code


@pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
def pytest_sessionfinish_of_worker(session: pytest.Session) -> None:
    """What an interrupted worker held is torn down by now, and xdist has told its controller nothing yet."""
    losing = session.config.stash.get(_LOSING, None)
    if losing is not None:
        losing.die()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Listen no more."""
    listening = config.stash.get(_LISTENING, None)
    if listening is not None:
        listening.stop()
        del config.stash[_LISTENING]
