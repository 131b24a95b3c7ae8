"""Files that a run names: they lie in its folder, or they are not read.

A run folder may come from somebody else (a CI artifact). A path with ``..``, an absolute one, or a symbolic link must
not make a report, a merge or an Allure result of whatever else this machine can read. The run folder itself may be a
link: its user named it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from lm_audit.errors import StoreError


def relative_name(name: str) -> str:
    """``name`` if it is the path of a file below a folder by its form alone; ``StoreError`` for any other."""
    parts = name.replace("\\", "/").split("/")
    outside = name.startswith(("/", "\\")) or PureWindowsPath(name).drive or ".." in parts
    if not name.strip("./\\") or outside or "\0" in name:
        raise StoreError(f"{name!r} leads out of the run folder: a run holds its files by paths within it")
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise StoreError(f"{name!r} is a name that no file has") from error
    return name


def file_inside(folder: Path, name: str) -> Path:
    """The file ``name`` of the run in ``folder``.

    Raises ``StoreError`` where it lies, or a link leads, outside of the folder, and where it is no regular file;
    ``OSError`` where it is absent or cannot be looked at.
    """
    path = folder / relative_name(name)
    try:
        found = path.resolve(strict=True)
    except RuntimeError as error:  # Older versions raise this for links in a circle.
        raise StoreError(f"{name!r} is a link that leads nowhere") from error
    if not found.is_relative_to(folder.resolve()):
        raise StoreError(f"{name!r} is a link that leads out of the run folder: it is not followed")
    if not stat.S_ISREG(found.stat().st_mode):
        raise StoreError(f"{name!r} is no regular file")
    return found


SETTINGS = 64 * 2**20
"""Bytes that ``run.json`` and its like have at most: they take some thousands."""
RECORDS = 2**31
"""Bytes that a ledger or a file of rows has at most; 20,000 cases take a tenth of it."""


def content_inside(folder: Path, name: str, *, most: int = RECORDS) -> bytes:
    """The content of :func:`file_inside`; ``StoreError`` too for one that is larger than any that a run writes.

    It would be read into memory whole, which takes long, or more memory than there is.
    """
    path = file_inside(folder, name)
    refuse_huge(path, most=most)
    return path.read_bytes()


def refuse_huge(path: Path, *, most: int = RECORDS) -> None:
    """``StoreError`` for a file of more than ``most`` bytes."""
    size = path.stat().st_size
    if size > most:
        raise StoreError(f"{path.name} has {size:,} bytes, and a run writes at most {most:,}: it is not read")


def files_below(folder: Path, part: str) -> Iterator[str]:
    """The names of all files below ``folder/part``, sorted; links are named like files, and no folder of one entered.

    ``StoreError`` where ``part`` itself is a link that leads out of the folder.
    """
    top = folder / part
    try:
        leads_out = top.is_symlink() and not top.resolve().is_relative_to(folder.resolve())
    except RuntimeError as error:  # Older versions raise this for links in a circle.
        raise StoreError(f"{part}/ is a link that leads nowhere") from error
    if leads_out:
        raise StoreError(f"{part}/ is a link that leads out of the run folder: it is not followed")
    names: list[str] = []
    for where, folders, files in os.walk(top):
        linked = [name for name in folders if (Path(where) / name).is_symlink()]
        names += [(Path(where) / name).relative_to(folder).as_posix() for name in (*files, *linked)]
    yield from sorted(names)
