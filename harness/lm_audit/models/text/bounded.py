"""What a program of somebody else's may take of this process: memory and time of a chat template while it renders.

A template is Jinja: ``{{ "x" * 10**10 }}`` takes memory until the system kills the process, and loops within loops end
in years. The limits are the system's, so that they hold whatever operation, filter or method does it, and rendering
itself is the library's own.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MEMORY = 512 * 2**20
"""Bytes of addresses beyond those that the process has; the longest conversations take a hundredth of it."""
SECONDS = 3
"""Of the thread's processor time: no other thread and no busy machine ends it sooner. Templates take a millisecond."""
_AGAIN = 0.1
_LOCK = threading.Lock()
_BEFORE: list[tuple[int, int]] = []
"""The limits of before, once for each thread that is within them."""


class BoundsError(Exception):
    """A limit is reached; the message says which, as a predicate."""


@contextmanager
def bounded() -> Iterator[None]:
    """Within it ``BoundsError`` is raised for more than ``MEMORY`` bytes and after ``SECONDS``.

    The memory where the system tells what a process has mapped (Linux; CUDA's large maps are in that); the time in the
    main thread of systems with timers, where alone signals are heard.
    """
    try:
        with _memory(), _time():
            yield
    except MemoryError as error:
        raise BoundsError(f"takes more than {MEMORY >> 20} MiB") from error


@contextmanager
def _memory() -> Iterator[None]:
    mapped = _mapped()
    if resource is None or mapped is None:
        yield
        return
    with _LOCK:  # The limit is the process's: the first thread sets it, the last one gives back what was there.
        soft, hard = _BEFORE[0] if _BEFORE else resource.getrlimit(resource.RLIMIT_AS)
        wanted = mapped + MEMORY
        if soft == resource.RLIM_INFINITY or wanted < soft:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
        _BEFORE.append((soft, hard))
    try:
        yield
    finally:
        with _LOCK:
            before = _BEFORE.pop()
            if not _BEFORE:
                with suppress(OSError, ValueError):
                    resource.setrlimit(resource.RLIMIT_AS, before)


def _mapped() -> int | None:
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read(64).split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def _time() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    running, begun = True, time.thread_time()

    def end(number: int, frame: FrameType | None) -> None:
        if running and time.thread_time() - begun > SECONDS:  # the timer counts what all threads take
            raise BoundsError("does not come to an end")

    handler = signal.signal(signal.SIGVTALRM, end)
    timer = signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, _AGAIN)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if handler is None else handler)
