"""One process writes a run at a time: two that continue the same one would each measure what the other does."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable

from lm_audit.errors import UsageError
from lm_audit.runstore.layout import RunFolder


def hold(folder: RunFolder) -> Callable[[], None]:
    """Keep other processes from continuing the run until the function that is returned is called, or this one ends.

    ``UsageError`` where another one holds it. The folder of ledgers is what is locked, so that no file is left behind
    by whoever is killed; where the file system knows no locks, nothing is held.
    """
    descriptor = None
    with contextlib.suppress(OSError):
        descriptor = os.open(folder.ledger, os.O_RDONLY)
    if descriptor is None:
        return lambda: None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise UsageError(
            f"run {folder.run_id} is being written by another process; wait for its end, or start a new run"
        ) from error
    except OSError:
        os.close(descriptor)
        return lambda: None
    return _Held(descriptor).release


class _Held:
    """A lock that ends with this process: one that it has forked, and that outlives it, must not keep it."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor
        os.register_at_fork(after_in_child=self.release)

    def release(self) -> None:
        """Close the folder; the lock is gone once no process has it open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
