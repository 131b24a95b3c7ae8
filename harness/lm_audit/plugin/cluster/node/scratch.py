"""An actor's own temporary folder; what a killed actor leaves is removed by the next one that comes to the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what a killed actor leaves stays there.
    fcntl = None  # type: ignore[assignment]

PREFIX = "lm-audit-ray-"
_LOCK = "lock"


class Scratch:
    """A folder that is locked as long as its process lives: a lock, unlike a process id, holds across containers."""

    def __init__(self, parent: Path | None = None):
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        draft = self.path / f"{_LOCK}.new"
        self._handle = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        draft.rename(self.path / _LOCK)  # Nobody finds a lock that is not held yet.

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _sweep(parent: Path) -> None:
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # Somebody else's, or gone in between.
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                handle = os.open(folder / _LOCK, os.O_RDWR)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(handle)
