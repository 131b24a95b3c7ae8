"""Checks of files that are made once: again only where a file is another than it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path

Check = Callable[[Path], None]


def once_unchanged(check: Check) -> Check:
    """``check``, which raises for what is wrong with a file, remembered for files that are right and as they were.

    What a file is goes by its path and by device, inode, size and times, of which the last change of any kind cannot be
    set. A refusal is not remembered.
    """

    @lru_cache(maxsize=64)
    def known(path: Path, *stamp: int) -> None:
        check(path)

    @wraps(check)
    def checked(path: Path) -> None:
        try:
            state = path.stat()
        except OSError:
            check(path)  # says itself what is wrong
            return
        known(path.absolute(), state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)

    return checked
