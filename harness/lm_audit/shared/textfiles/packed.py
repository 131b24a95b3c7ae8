"""Files that gzip packed (``items.jsonl.gz``): read like what they hold."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from lm_audit.errors import DataError

MOST = 2**30
"""So many bytes a packed file may hold: a small one can unpack to more than any disk has."""

_MAGIC = b"\x1f\x8b"


def ending_of(path: str | Path) -> str:
    """The ending that says what is in a file, in small letters: ``.jsonl`` of ``items.jsonl.gz``."""
    path = Path(path)
    return Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()


def is_packed(path: Path) -> bool:
    """Whether a file begins as gzip's do, whatever its name says."""
    with path.open("rb") as handle:
        return handle.read(2) == _MAGIC


@contextmanager
def opened_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked; ``DataError`` for a damaged packing, and for one that holds more than ``MOST``."""
    if not is_packed(path):
        with path.open("rb") as plain:
            yield plain
        return
    try:
        with gzip.open(path) as handle:
            held = 0
            while piece := handle.read(2**20):
                held += len(piece)
                if held > MOST:
                    raise DataError(f"unpacks to more than {MOST:,} bytes; unpack it (gunzip) to be read", file=path)
            handle.seek(0)
            yield cast(IO[bytes], handle)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"is damaged gzip: {error}", file=path) from error
