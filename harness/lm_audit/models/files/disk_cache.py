"""The folder for what is made once and read by every process: conversions, trained toys, digests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from lm_audit.errors import HarnessError, ModelError, UsageError
from lm_audit.shared.home import from_home, user_cache
from lm_audit.shared.sealed_folder import is_whole, write_seal
from lm_audit.shared.textfiles import replacing
from lm_audit.shared.textfiles.full_disk import full_disk

CACHE_VARIABLE = "LM_AUDIT_CACHE"


def cache_dir() -> Path:
    """``$LM_AUDIT_CACHE``, else ``lm-audit`` in the user's cache folder (``$XDG_CACHE_HOME``, ``~/.cache``).

    Raises ``UsageError`` where the variable names the home of a user who is not there.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        folder = from_home(named)
        if str(folder).startswith("~"):
            raise UsageError(f"LM_AUDIT_CACHE={named!r:.200}: there is no such home; give the folder's whole path")
        return folder
    return user_cache() / "lm-audit"


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """``folder``, after ``build(scratch)`` has filled it if it was absent, or is no longer what was built.

    One process builds while the others wait at a file lock; the folder appears whole or not at all, since it is
    renamed into place. ``FOLDER.seal`` beside it holds what its files are (:mod:`lm_audit.shared.sealed_folder`):
    where one was cut, changed or removed since, the folder is built anew, since a model of changed weights would pass
    for the one that it was made of. Raises ``ModelError`` where the cache cannot be written.
    """
    if is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not is_whole(folder):
                if folder.is_dir():
                    shutil.rmtree(folder)
                _build_beside(folder, build)
    except HarnessError:
        raise
    except Exception as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else full_disk(error)
        if reason is None:
            raise
        raise ModelError(f"cannot write the cache folder {folder}: {reason} (set LM_AUDIT_CACHE)") from error
    return folder


def write_once(path: Path, write: Callable[[Path], None]) -> Path:
    """``path``, after ``write(draft)`` has written it if it was absent: one process writes, the others wait at a lock.

    What ``write`` raises is raised, and leaves nothing behind; ``OSError`` where the disk refuses.
    """
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.is_file():
                with replacing(path) as draft:
                    write(draft)
    return path


def _build_beside(folder: Path, build: Callable[[Path], None]) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(scratch)
        scratch.chmod(0o755)
        write_seal(scratch, folder)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
