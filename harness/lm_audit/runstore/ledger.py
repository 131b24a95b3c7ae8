"""Ledger: the append-only file into which one process writes what happens, record by record.

A record is one line of JSON with the keys ``v`` (schema version), ``t`` (seconds since the epoch, for people), ``s``
(which session of the run, from 1), ``m`` (seconds of the machine's monotonic clock) and ``kind``. Order goes by ``s``
and ``m``: the wall clock may be set back between two sessions of a run. A record is written with one system call, so
that a process killed at any moment leaves at most one torn line, the last. The last key, ``c``, is a checksum of what
stands before it in the line (:mod:`lm_audit.shared.sealed`).
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Literal

from lm_audit.errors import StoreError
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.records import SCHEMA_VERSION
from lm_audit.shared.sealed import sealed
from lm_audit.shared.textfiles.appending import open_to_append

Kind = Literal[
    "run_start", "plan", "case_start", "model", "metric", "rows", "figure", "artifact", "control", "parameter", "note",
    "read", "headline", "finding", "verdict", "judged", "case_end", "run_end",
]  # fmt: skip


class LineFile:
    """A file to which whole lines are appended; a line is on its way to the disk when :meth:`append` returns."""

    def __init__(self, path: Path):
        self.path = path
        try:
            # A process id can come again: a file that is there may end in the torn line of a killed process.
            self._torn = _ends_torn(path)
            self._handle: int | None = open_to_append(path)
            self._size = os.fstat(self._handle).st_size
        except OSError as error:
            raise StoreError(f"cannot open {path}: {error.strerror or error}") from error

    def append(self, record: object, *, seal: bool = False) -> bytes:
        """Write ``record`` (plain JSON) as one line, which is returned.

        With ``seal`` the record is an object and gets its checksum. ``StoreError`` where the disk refuses, earlier
        lines are kept.
        """
        if self._handle is None:
            raise StoreError(f"cannot write to {self.path}: it is closed")
        text = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")
        line = (sealed(text) if seal else text) + b"\n"
        # After a failed write the file may end in half a line: begin a fresh one, so that only that one is damaged.
        data = b"\n" + line if self._torn else line
        try:
            while data:
                written = os.write(self._handle, data)
                self._size += written
                data = data[written:]
        except OSError as error:
            self._torn = True
            raise StoreError(
                f"cannot write to {self.path}: {error.strerror or error}; everything recorded before is kept"
            ) from error
        self._torn = False
        return line

    def sync(self) -> None:
        """Force what was written onto the disk.

        ``StoreError`` where the disk refuses, and where the file was removed or cut since: a process goes on writing
        into a file that has no name any more, and nothing else would tell.
        """
        if self._handle is not None:
            try:
                os.fsync(self._handle)
                there = os.stat(self.path).st_size
            except (FileNotFoundError, NotADirectoryError) as error:
                raise StoreError(f"{self.path} was removed while the run wrote it: what it held is lost") from error
            except OSError as error:
                raise StoreError(f"cannot write to {self.path}: {error.strerror or error}") from error
            if there < self._size:
                raise StoreError(f"{self.path} was cut or replaced while the run wrote it: what it held is lost")

    def close(self) -> None:
        """Close the file; further appends fail. ``StoreError`` where the disk refuses, as network file systems may."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                os.close(handle)
            except OSError as error:
                raise StoreError(f"cannot write to {self.path}: {error.strerror or error}") from error


def _ends_torn(path: Path) -> bool:
    """Whether a file is there whose last line has no end."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as handle:
        handle.seek(-1, os.SEEK_END)
        return handle.read(1) != b"\n"


class Ledger:
    """The ledger of one process, ``<worker>-<pid>.jsonl`` in ``folder``, in the ``session``-th session of its run.

    ``clock`` is added to the monotonic clock: that of the run's controller less this machine's, where they differ.
    ``run`` is stated in the first record: a ledger that lies in the folder of another run is told by it.
    """

    def __init__(self, folder: Path, worker: str, session: int = 1, clock: float = 0.0, run: str | None = None):
        self.worker = worker
        self._unstated = {} if run is None else {"run": run}
        self._session = session
        self._clock = clock
        self.writer = f"{worker}-{os.getpid()}"
        self._file = LineFile(folder / f"{self.writer}.jsonl")

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._file.path

    def write(self, kind: Kind, **fields: object) -> None:
        """Append one record; its fields are made plain JSON first (``StoreError`` names one that cannot be)."""
        head = {
            "v": SCHEMA_VERSION,
            "t": round(time.time(), 6),
            "s": self._session,
            "m": round(time.monotonic() + self._clock, 6),
            "kind": kind,
            **self._unstated,
        }
        self._file.append(head | {name: plain(value, name) for name, value in fields.items()}, seal=True)
        self._unstated = {}

    def sync(self) -> None:
        """Force the ledger onto the disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the ledger; ``StoreError`` where the disk refuses."""
        self._file.close()
