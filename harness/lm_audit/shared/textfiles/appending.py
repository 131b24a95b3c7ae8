"""A file that grows at its end, opened without waiting for anybody."""

from __future__ import annotations

import os
from pathlib import Path

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)
"""A pipe in the file's place, which nobody reads, would be waited for without end; Windows has none by name."""


def open_to_append(path: Path) -> int:
    """The descriptor of ``path``, made where it is absent; ``OSError`` as the system gives it, also for a pipe."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _WITHOUT_WAITING, 0o644)
