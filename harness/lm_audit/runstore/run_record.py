"""The text of ``run.json``: an object with a checksum, by which a reader knows that a value was changed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

CHECKSUM = "checksum"


def text_of(record: Mapping[str, object]) -> str:
    """The object as JSON, ASCII alone, with its checksum (CRC-32, 8 hex digits) as the last key."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    return json.dumps(content | {CHECKSUM: _checksum(content)}, indent=1, ensure_ascii=True) + "\n"


def without_checksum(record: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The object without its checksum, and what is wrong with it; one of before there were any is right without."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    if CHECKSUM not in record or record[CHECKSUM] == _checksum(content):
        return content, None
    return content, "changed since it was written: it is not what its checksum says"


def _checksum(content: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(content, ensure_ascii=True).encode('ascii')):08x}"
