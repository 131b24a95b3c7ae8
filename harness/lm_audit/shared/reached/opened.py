"""Which files a project's code opened to read, noted while it runs: no reader of the source could tell all of them.

Data beside an eval, rows that another file names, helpers that are loaded by path: an audit hook of Python sees each
``open``, and the sources on the stack say for whom. What this process wrote, or anybody since it began to watch (a tool
that it called), is nobody's input. Readers that open files outside of Python (Arrow's own, safetensors) are not seen.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Collection
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType

import lm_audit

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_INSTALLED = ("site-packages", "dist-packages")
_APART_S = 10.0
"""By how much the clocks of this machine and of a file server may differ, or one be put forward meanwhile."""
_SYSTEM = ("/proc/", "/sys/", "/etc/", "/run/", "/usr/share/", "/usr/lib/")


class _Opened:
    """What was opened since :func:`watch`: by path the sources on whose behalf, and what was written."""

    def __init__(self) -> None:
        self.active = self.hooked = False
        self.since = self.began = 0.0
        """When the watch began, by the clock and by the monotonic one."""
        self.read: dict[str, set[str]] = {}
        self.log: list[tuple[str, set[str]]] = []
        """What ``read`` holds, in the order in which it was seen."""
        self.written: set[str] = set()
        self.outside = (*_libraries(), *_SYSTEM)
        self.known: dict[str, bool] = {}

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.active and event in ("open", "os.rename"):
            try:
                if event == "open":
                    self._opened(*arguments)
                else:
                    self.written.add(_absolute(arguments[1]))
            except (TypeError, ValueError, OSError):  # What is no path is opened, or refused, by whoever was asked.
                return

    def _opened(self, path: object, mode: object, flags: object) -> None:
        if isinstance(path, int):
            return
        where = _absolute(path)
        written = any(sign in mode for sign in "wax+") if isinstance(mode, str) else False
        if written or (isinstance(flags, int) and flags & _WRITING):
            self.written.add(where)
        elif not self.is_outside(where):
            known = self.read.setdefault(where, set())
            if fresh := self._sources(sys._getframe(2)) - known:
                known |= fresh
                self.log.append((where, fresh))

    def is_outside(self, where: str) -> bool:
        """Whether a file is the system's, Python's, an installed package's or ours: versions tell of those."""
        found = self.known.get(where)
        if found is None:
            found = where.startswith(self.outside) or not {*_INSTALLED}.isdisjoint(where.split(os.sep))
            self.known[where] = found
        return found

    def _sources(self, frame: FrameType | None) -> set[str]:
        found = set()
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith("<") and not self.is_outside(name):
                found.add(name)
            frame = frame.f_back
        return found


def _libraries() -> tuple[str, ...]:
    folders = [path for name, path in sysconfig.get_paths().items() if name.endswith("lib")]
    named = [os.path.abspath(folder) for folder in (*folders, *lm_audit.__path__)]
    return tuple(f"{folder}{os.sep}" for folder in dict.fromkeys([*named, *map(os.path.realpath, named)]))


def _absolute(path: object) -> str:
    return os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # a TypeError where it is no path


_OPENED = _Opened()


def watch() -> None:
    """Note from now on what is opened; a process cannot take back its hook, only :func:`rest`."""
    _OPENED.active, _OPENED.since, _OPENED.began = True, time.time(), time.monotonic()
    if not _OPENED.hooked:
        _OPENED.hooked = True
        sys.addaudithook(_OPENED.hear)


def rest() -> None:
    """Note nothing any more, and forget what was noted."""
    _OPENED.active = False
    _OPENED.read.clear()
    _OPENED.log.clear()
    _OPENED.written.clear()


def is_outside(path: Path) -> bool:
    """Whether a file is the system's, Python's, an installed package's or this one's."""
    return _OPENED.is_outside(str(path))


def files_read_by(sources: Collection[Path], since: int = 0) -> tuple[list[Path], int]:
    """The files that are there, were read on behalf of any of ``sources`` (resolved paths) and not written here; and
    what to give as ``since`` to be told of later ones alone.

    A module that Python took from its cache stands for its source.
    """
    log = _OPENED.log[since:]
    found = {
        _source(where)
        for where, readers in log
        if where not in _OPENED.written and any(_resolved(reader) in sources for reader in readers)
    }
    return sorted(path for path in found if _is_older(path)), since + len(log)


def _is_older(path: Path) -> bool:
    """Whether a file is there and was not written since :func:`watch`.

    One that is dated later than now was not: the clock has been put back since.
    """
    now = _OPENED.since + (time.monotonic() - _OPENED.began)
    try:
        return path.is_file() and not _OPENED.since < path.stat().st_mtime <= now + _APART_S
    except OSError:
        return False


def _source(where: str) -> Path:
    return Path(source_from_cache(where) if where.endswith(".pyc") and "__pycache__" in where else where)


def _resolved(name: str) -> Path:
    found = _RESOLVED.get(name)
    if found is None:
        found = _RESOLVED[name] = Path(name).resolve()
    return found


_RESOLVED: dict[str, Path] = {}
