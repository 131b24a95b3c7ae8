"""A file that takes another's place whole: a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, synced: bool = False) -> Iterator[Path]:
    """A draft beside ``path`` to write, which takes its place once the block ends; its folder must exist.

    A link at ``path`` is replaced, not followed; a device is left where it is (``OSError``). ``synced``: the draft has
    reached the disk before it bears the name, so that a machine that loses power keeps one of the two. ``OSError`` as
    the disk gives it; then the draft is gone and ``path`` is as it was. A draft that a killed process left is called
    ``.NAME.*.tmp``.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(path).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise OSError(errno.EPERM, "is a device, and no file that another may take the place of", str(path))
    # Neither a process id nor a thread's tells machines apart that share the folder.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield draft
        if synced:
            _sync(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)  # Windows flushes only what may be written.
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
