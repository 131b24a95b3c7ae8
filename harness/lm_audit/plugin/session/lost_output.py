"""A run outlives its reader: a terminal that was closed, ``| head`` or a ``tee`` that was killed costs no evidence.

Writing to a terminal that is gone, or into a pipe that nobody reads, is an error each time. Raised in the middle of a
report, or of the end of a run that was just told to end, it would take the run with it.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import Any

import pytest

from lm_audit.plugin import compat

_STANDARD = (1, 2)


class LostOutput:
    """A text file whose writing never fails: where nobody can read any more, what is written is dropped."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write ``text`` if somebody is there to read it."""
        with self._given_up():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, likewise."""
        with self._given_up():
            self._file.flush()

    @contextlib.contextmanager
    def _given_up(self) -> Any:
        try:
            yield
        except OSError:
            _drop(self._file)


def _drop(file: Any) -> None:
    """Have all that goes to standard output or error, or to ``file``, and that nobody reads, go nowhere.

    Python flushes its standard streams when it ends, and others write to them, which would fail as well.
    """
    numbers = {number for number in _STANDARD if _without_reader(number)}
    with contextlib.suppress(OSError, ValueError):
        numbers.add(file.fileno())
    for number in numbers:
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def _without_reader(number: int) -> bool:
    asked = select.poll()
    asked.register(number, 0)  # Errors and hang-ups are told unasked.
    try:
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in asked.poll(0))
    except OSError:
        return False


def pytest_lm_audit_loop_begin(session: pytest.Session) -> None:
    """From the first case on the terminal may go."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        compat.write_through(terminal, LostOutput)
