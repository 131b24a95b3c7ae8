"""SIGTERM ends a run like Ctrl-C does: no further case, the reports written, exit code 143.

Batch systems send it some time before they kill (SLURM, Kubernetes, CI). Without this Python would die at once; the
evidence would be safe, but no report would say so. Workers keep the default: one that is terminated counts as crashed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from types import FrameType

import pytest

EXIT_CODE = 128 + signal.SIGTERM

_terminated_key = pytest.StashKey[bool]()


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. No ``Exception``, or a training loop that turns those into errors of its own would go on."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Listen for SIGTERM while cases run, in the controller or a run without workers."""
    if hasattr(session.config, "workerinput") or threading.current_thread() is not threading.main_thread():
        return (yield)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return (yield)
    except Terminated:
        session.config.stash[_terminated_key] = True
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    # Once is enough: a second signal must not cut the writing of the report short.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated("SIGTERM received: the run can be continued with --resume")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit with the code that schedulers expect of a process that was terminated."""
    if session.config.stash.get(_terminated_key, False):
        session.exitstatus = EXIT_CODE
