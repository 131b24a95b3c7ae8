"""Whether a name is that of a file that can be read, without ever opening what could hang."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from lm_audit.errors import DataError

_KERNEL = ("/proc/", "/sys/", "/dev/fd/")
"""Where files look regular and may wait for ever, or be another text at every reading (``/proc/kmsg``)."""

MOST_ENTRIES = 200_000
"""What a folder of data holds at most, with the folders in it: more take seconds to look through."""


def made_by_kernel(path: Path) -> bool:
    """Whether a file has no content of its own: the kernel makes it as it is read."""
    return os.path.realpath(path).startswith(_KERNEL)


def as_spelt(path: Path) -> Path:
    """The path as the disk spells it: macOS writes names with accents in other characters than keyboards do."""
    if str(path).isascii() or is_there(path):
        return path
    forms = [unicodedata.normalize(form, str(path)) for form in ("NFC", "NFD")]
    others = [*map(Path, forms), *(path.parent / Path(form).name for form in forms)]
    return next((other for other in others if is_there(other)), path)


def is_there(path: Path) -> bool:
    """Whether a file or folder exists, False too for a name that no file can have or a folder that is closed to us."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """The same of a file; what the kernel makes as it is read counts as none, by whatever link it is named."""
    try:
        return path.is_file() and not made_by_kernel(path)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """The same of a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def readable_file(path: str | Path) -> Path:
    """The path, if it is a regular file that may be read.

    Raises ``DataError`` for one that is absent, a folder, a pipe or a device (which could hang, and cannot be read
    twice), closed to us, or named as no file can be.
    """
    path = as_spelt(Path(path))
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError("there is no such file", file=path) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise DataError(f"is no name of a file: {error}", file=path) from error
    if stat.S_ISDIR(mode):
        raise DataError("is a folder; a file is needed", file=path)
    if not stat.S_ISREG(mode):
        raise DataError("is a pipe or a device; save its content as a file", file=path)
    if made_by_kernel(path):
        raise DataError("is made by the kernel as it is read, maybe without end; save its content as a file", file=path)
    if not os.access(path, os.R_OK):
        raise DataError("cannot be read: Permission denied", file=path)
    return path


def files_in(folder: Path, *patterns: str, below: bool = False) -> list[Path]:
    """What the folder, and with ``below`` those in it, hold by names that fit one of the globs; sorted, no folders.

    Raises ``DataError`` for a folder that cannot be listed, where ``Path.glob`` would leave out what is in it, and for
    one of so many entries that it is no set of data (``/``, somebody's home). Folders behind symbolic links are not
    entered.
    """
    return sorted(path for path in _entries(folder, below) if any(fnmatchcase(path.name, one) for one in patterns))


def _entries(folder: Path, below: bool) -> Iterator[Path]:
    waiting, seen = [folder], 0
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                found = [(Path(entry), _is_folder(entry), entry.is_symlink()) for entry in entries]
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=here) from error
        seen += len(found)
        if seen > MOST_ENTRIES:
            raise DataError(
                f"holds more than {MOST_ENTRIES:,} files and folders; name the one of the data", file=folder
            )
        yield from (path for path, is_dir, _ in found if not is_dir)
        waiting += [path for path, is_dir, linked in found if below and is_dir and not linked]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Without asking the disk again of what is no link."""
    return is_folder(Path(entry)) if entry.is_symlink() else entry.is_dir(follow_symlinks=False)
