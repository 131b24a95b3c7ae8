"""Lines of JSON with a checksum of their own, by which a reader knows a line that was changed and is JSON still."""

from __future__ import annotations

import re
import zlib

_SEAL = re.compile(rb',"c":"([0-9a-f]{8})"\}\s*\Z')


def sealed(text: bytes) -> bytes:
    """An object in JSON, not empty, with a checksum (CRC-32, 8 hex digits) of itself as its last key ``c``."""
    return text[:-1] + b',"c":"%08x"}' % zlib.crc32(text)


def unsealed(line: bytes, *, required: bool = False) -> bytes:
    """The line without its checksum, if it has one; ``ValueError`` where that is not the checksum of the line.

    The same where it has none and one is ``required``.
    """
    seal = _SEAL.search(line, max(0, len(line) - 32))
    if seal is None:
        if required:
            raise ValueError("it has no checksum")
        return line
    text = line[: seal.start()] + b"}"
    if zlib.crc32(text) != int(seal[1], 16):
        raise ValueError("changed since it was written: it is not what its checksum says")
    return text
