"""SIGTERM ends a run like Ctrl-C does: no further case, the reports written, exit code 143.

Batch systems send it some time before they kill (SLURM, Kubernetes, CI). Without this Python would die at once; the
evidence would be safe, but no report would say so. Workers keep the default: one that is terminated counts as crashed.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

EXIT_CODE = 128 + signal.SIGTERM

_terminated_key = pytest.StashKey[bool]()
_before_key = pytest.StashKey[Any]()


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. No ``Exception``, or a training loop that turns those into errors of its own would go on."""


def pytest_lm_audit_loop_begin(session: pytest.Session) -> None:
    """Listen for SIGTERM while cases run, in the controller or a run without workers."""
    config = session.config
    if hasattr(config, "workerinput") or threading.current_thread() is not threading.main_thread():
        return

    def stop(number: int, frame: FrameType | None) -> None:
        # Once is enough: a second signal must not cut the writing of the report short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        config.stash[_terminated_key] = True
        raise Terminated("SIGTERM received: the run can be continued with --resume")

    config.stash[_before_key] = signal.signal(signal.SIGTERM, stop)


def pytest_lm_audit_loop_end(session: pytest.Session) -> None:
    """Listen no more."""
    if _before_key in session.config.stash:
        signal.signal(signal.SIGTERM, session.config.stash[_before_key])
        del session.config.stash[_before_key]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit with the code that schedulers expect of a process that was terminated."""
    if session.config.stash.get(_terminated_key, False):
        session.exitstatus = EXIT_CODE
