"""What the files of a built folder are, kept beside it, so that one that was damaged since is known.

A file whose size, times and place on the disk are those of the seal counts as unchanged, and is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import replacing

Known = tuple[str, list[int]]
"""The SHA-256 of a file, and its stamp: size, times of modification and change in nanoseconds, inode."""


def write_seal(made: Path, folder: Path) -> None:
    """Write ``FOLDER.seal`` of the files in ``made``, which is to become ``folder``; ``OSError`` as the disk says."""
    files = {path.relative_to(made).as_posix(): _known(path) for path in sorted(made.rglob("*")) if path.is_file()}
    _write(folder, files)


def is_whole(folder: Path) -> bool:
    """Whether the folder is there, and its files are what its seal says; one of an older version has no seal."""
    if not folder.is_dir():
        return False
    try:
        content = _place(folder).read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        files: dict[str, Known] = json.loads(unsealed(content, required=True))["files"]
        now = {name: _known_still(folder / name, known) for name, known in files.items()}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    if any(found[0] != files[name][0] for name, found in now.items()):
        return False
    if now != files:  # A copy of the folder: read once, and known by its stamps from now on.
        with suppress(OSError):
            _write(folder, now)
    return True


def _place(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seal")


def _write(folder: Path, files: Mapping[str, Known]) -> None:
    with replacing(_place(folder)) as draft:
        draft.write_bytes(sealed(json.dumps({"files": files}).encode("ascii")))


def _known_still(path: Path, known: Known) -> Known:
    return known if _stamp(path) == known[1] else _known(path)


def _known(path: Path) -> Known:
    if not path.is_file():  # a pipe would wait for its writer
        return "", _stamp(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), _stamp(path)


def _stamp(path: Path) -> list[int]:
    state = os.stat(path)
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
