"""What workers have written, as it comes onto this machine's disk: the end of a case is forced onto it."""

from __future__ import annotations

import os
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.plugin.cluster.node.mirror import EndedCases, Piece, write_piece
from lm_audit.runstore.layout import unusable


class Written:
    """The run's folder on the controller's side."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._ended = EndedCases()
        self._touched: set[str] = set()

    def take(self, piece: Piece) -> str | None:
        """Write a piece; why it could not be written, if so. ``ValueError`` for one that leads elsewhere."""
        try:
            write_piece(self._folder, piece)
        except OSError as error:
            return str(unusable(self._folder.parent, error))
        if self._ended.completed_by(piece):
            self._touched.add(piece[0])
        return None

    def sync(self) -> None:
        """Force the ledgers in which cases have ended onto the disk; ``StoreError`` where it refuses."""
        touched, self._touched = self._touched, set()
        for name in touched:
            try:
                handle = os.open(self._folder / name, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
            except OSError as error:
                raise StoreError(unusable(self._folder.parent, error)) from error
