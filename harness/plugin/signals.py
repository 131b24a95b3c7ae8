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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Listen for SIGTERM while cases run, in the controller or a run without workers."""
    if hasattr(session.config, "workerinput") or threading.current_thread() is not threading.main_thread():
        return (yield)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return (yield)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    # Once is enough: a second signal must not cut the writing of the report short.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pytest.exit("SIGTERM received: the run can be continued with --resume", returncode=EXIT_CODE)
