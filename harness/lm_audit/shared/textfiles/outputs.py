"""Whether a result can be written where the user wants it, found out before the work that makes it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lm_audit.errors import UsageError
from lm_audit.shared.textfiles.paths import is_file, is_folder, is_there


def check_output_file(path: str | Path, option: str) -> Path:
    """The path, if a file can be written there; its folder must exist. ``UsageError`` naming the option else."""
    path = Path(path)
    if is_folder(path):
        raise UsageError(f"{option} {str(path)!r:.200}: is a folder; name a file in it")
    if not is_folder(path.parent):
        raise UsageError(f"{option} {str(path)!r:.200}: there is no folder {str(path.parent)!r:.200}")
    there = is_there(path)
    if there and not is_file(path):
        raise UsageError(f"{option} {str(path)!r:.200}: is a pipe or a device; name a file")
    try:
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {str(path)!r:.200}: cannot be written: {_reason(error)}") from error
    return path


def check_output_folder(path: str | Path, option: str) -> Path:
    """The path, if it is a folder that can be written in, or can become one. ``UsageError`` naming the option else."""
    folder = path = Path(path)
    while not is_there(folder) and folder != folder.parent:
        folder = folder.parent
    if not is_folder(folder):
        raise UsageError(f"{option} {str(path)!r:.200}: {str(folder)!r:.200} is no folder")
    probe = folder / f".lm-audit-{os.getpid()}"
    try:
        if path != folder:
            os.stat(path)  # a name that no file can have, or a link in a circle
    except FileNotFoundError as error:
        if path.is_symlink():
            raise UsageError(f"{option} {str(path)!r:.200}: is a link that leads nowhere") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {str(path)!r:.200}: cannot be written: {_reason(error)}") from error
    try:
        probe.write_bytes(b"lm-audit")
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
        raise UsageError(f"{option} {str(path)!r:.200}: cannot be written: {_reason(error)}") from error
    return path


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
