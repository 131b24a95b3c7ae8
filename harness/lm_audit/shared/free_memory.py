"""How much memory this machine, or the container on it, still has."""

from __future__ import annotations

from pathlib import Path


def available_memory() -> int | None:
    """Bytes that can be used without swapping, cut to the container's limit; None where the system does not tell."""
    known = [size for size in (_free_bytes(), _container_bytes()) if size is not None]
    return min(known) if known else None


def _free_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _container_bytes() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))  # "max" is no number: no limit.
        used = int((group / "memory.current").read_text(encoding="ascii"))
        return max(0, limit - used)
    except (OSError, ValueError):
        return None
