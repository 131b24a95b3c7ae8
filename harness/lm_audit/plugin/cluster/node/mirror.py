"""Brings what a process writes into one folder to where it is wanted: the new bytes of every file, in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

APPENDED = ("rows", "artifacts", "hangs", "ledger")
"""Folders of files that only grow. The ledger is read first and sent last: what its lines name is there before them."""

REPLACED = ("progress",)
"""Folders of files that are written anew each time."""

PIECE = 4 << 20
"""Bytes in one piece at most."""

Piece = tuple[str, int, bytes]
"""Path within the folder, offset (-1: the file is replaced by these bytes), bytes."""


class Mirror:
    """The sending end."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._sent: dict[str, int] = {}
        self._states: dict[str, tuple[int, int]] = {}

    def news(self) -> Iterator[Piece]:
        """What was written since the last call."""
        sizes = [(part, list(_files(self._folder / part))) for part in reversed(APPENDED)]
        for _, files in reversed(sizes):
            for path, size in files:
                yield from self._grown(path, size)
        for part in REPLACED:
            for path, _ in _files(self._folder / part):
                yield from self._replaced(path)

    def _grown(self, path: Path, size: int) -> Iterator[Piece]:
        name = path.relative_to(self._folder).as_posix()
        begin = self._sent.get(name, 0)
        if size <= begin and name in self._sent:
            return
        with path.open("rb") as handle:
            handle.seek(begin)
            while True:
                data = handle.read(min(PIECE, size - begin))
                if data or name not in self._sent:
                    yield name, begin, data
                begin += len(data)
                self._sent[name] = begin
                if not data or begin >= size:
                    return

    def _replaced(self, path: Path) -> Iterator[Piece]:
        try:
            status = path.stat()
            state = (status.st_mtime_ns, status.st_size)
            name = path.relative_to(self._folder).as_posix()
            if path.suffix != ".tmp" and self._states.get(name) != state:
                self._states[name] = state
                yield name, -1, path.read_bytes()
        except OSError:  # Replaced or gone in between: the next call sees.
            return


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for where, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(where) / name
            try:
                yield path, path.stat().st_size
            except OSError:
                continue


class EndedCases:
    """Finds the ends of cases in ledgers that come in pieces, which may be cut anywhere."""

    _MARK = b'"kind":"case_end"'

    def __init__(self) -> None:
        self._open: dict[str, bytes] = {}

    def completed_by(self, piece: Piece) -> bool:
        """Whether the end of a case is whole with this piece."""
        name, _, data = piece
        if not name.startswith("ledger/"):
            return False
        lines, newline, rest = (self._open.pop(name, b"") + data).rpartition(b"\n")
        if rest:
            self._open[name] = rest
        return bool(newline) and self._MARK in lines


def write_piece(folder: Path, piece: Piece) -> None:
    """The receiving end. ``OSError`` where the disk refuses, ``ValueError`` for a path that leads elsewhere."""
    name, offset, data = piece
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or parts[0] not in (*APPENDED, *REPLACED) or ".." in parts:
        raise ValueError(f"a worker sent a file called {name!r}, which is none of a run")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    if offset < 0:
        draft = path.with_name(f"{path.name}.tmp")
        draft.write_bytes(data)
        draft.replace(path)
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        while data:
            written = os.pwrite(handle, data, offset)
            data, offset = data[written:], offset + written
    finally:
        os.close(handle)
