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
    return lambda: os.close(descriptor)
