"""An interrupt is told of wherever it arrived.

A signal may arrive at an instruction that belongs to no line of the source (the jump back of a loop, the end of a
``with``). Python has no line number of such a place then, pytest counts on one, and telling of the interrupt would
itself end in a traceback, with exit code 1.
"""

from __future__ import annotations

from types import TracebackType

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Give each place a line before pytest and other plugins read them."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [excinfo.value]
    while pending:
        error = pending.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = with_lines(error.__traceback__)
        pending += [error.__cause__, error.__context__]
    if (told := with_lines(excinfo.tb)) is not None:
        excinfo.traceback = type(excinfo.traceback)(told)


def with_lines(traceback: TracebackType | None) -> TracebackType | None:
    """The same places; one that has no line stands at the first of its function."""
    places = []
    while traceback is not None:
        places.append(traceback)
        traceback = traceback.tb_next
    told: TracebackType | None = None
    for place in reversed(places):
        # typeshed knows of no place without a line.
        line: int | None = place.tb_lineno
        if line is None:
            # Whoever looks for its columns finds none either.
            told = TracebackType(told, place.tb_frame, -1, place.tb_frame.f_code.co_firstlineno)
        else:
            told = TracebackType(told, place.tb_frame, place.tb_lasti, line)
    return told
