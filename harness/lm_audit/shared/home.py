"""Paths that begin at somebody's home, on systems where nobody knows it too (a container with a bare user number)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def from_home(path: str | Path) -> Path:
    """``path`` with ``~`` and ``~user`` replaced; as it is where there is no such home."""
    return Path(os.path.expanduser(path))


def user_cache() -> Path:
    """``$XDG_CACHE_HOME``, else ``~/.cache``; a folder for this user's number among temporary files without a home."""
    cache = from_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return Path(tempfile.gettempdir(), f"cache-of-{os.getuid()}") if str(cache).startswith("~") else cache
