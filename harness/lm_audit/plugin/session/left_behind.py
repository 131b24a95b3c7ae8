"""What a case whose time was up leaves behind: processes that it started, and threads that do not end.

Its processes are those that descend from children which this one got since the case's own fixtures were set up. What
was there before (a server of a session's fixture) is not touched, nor what children of before have started since. Of a
dead worker that hung pytest's own variables tell: they stand in the environment of what its test function started.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable

import psutil

PATIENCE_S = 2.0
"""How long a process may take to end by itself once it is told."""

THREADS_S = 5.0
"""How long threads of cases whose time was up may take to end once all else has."""

_PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Started by whatever needs them first, and kept by the interpreter for all that come after."""


class Children:
    """The children that this process has when this is made, and those that it gets."""

    def __init__(self) -> None:
        self._before = set(psutil.Process().children())

    def end_new(self) -> list[str]:
        """End the children that are new, with all that they have started; returns their names, with ids."""
        new = [child for child in psutil.Process().children() if child not in self._before]
        return end(one for root in new for one in _family(root))


def end_left_by(run: str, case_id: str) -> list[str]:
    """End what the test function of a case had started in a worker that is dead; returns the names, with ids.

    ``run`` is what xdist calls this run (``PYTEST_XDIST_TESTRUNUID``).
    """
    wanted = {"PYTEST_XDIST_TESTRUNUID": run, "PYTEST_CURRENT_TEST": f"{case_id} (call)"}
    roots = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            told = process.environ() if process.pid != os.getpid() else {}
            if wanted.items() <= told.items():
                roots.append(process)
    return end(dict.fromkeys(one for root in roots for one in _family(root)))


def end(processes: Iterable[psutil.Process]) -> list[str]:
    """Tell each process to end, kill those that do not; the children of this one are left for it to wait for."""
    told: dict[psutil.Process, str] = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                name = f"{process.name()} ({process.pid})"
                process.terminate()
                told[process] = name
    until = time.monotonic() + PATIENCE_S
    while any(map(_runs, told)) and time.monotonic() < until:
        time.sleep(0.02)
    for process in filter(_runs, told):
        with contextlib.suppress(psutil.Error):
            process.kill()
    return list(told.values())


def _family(root: psutil.Process) -> list[psutil.Process]:
    found = [] if _is_pythons(root) else [root]
    with contextlib.suppress(psutil.Error):
        found += root.children(recursive=True)
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        # One that has ended stays in the list until its parent asks.
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_pythons(process: psutil.Process) -> bool:
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(name in command for name in _PYTHONS_OWN)


def end_without_threads(exit_code: int, seconds: float) -> None:
    """Have this process end with ``exit_code`` so many seconds after all else of it has, though threads of it do not:
    Python would wait for them for ever.
    """
    threading.Thread(target=_end_without_threads, args=(exit_code, seconds), daemon=True).start()


def _end_without_threads(exit_code: int, seconds: float) -> None:
    threading.main_thread().join()
    time.sleep(seconds)
    os._exit(exit_code)
