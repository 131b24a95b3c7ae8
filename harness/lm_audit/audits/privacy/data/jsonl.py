"""Strict JSON lines: what is written reads back equal, and a file is either the old one or the new one.

Reading is :mod:`lm_audit.textfiles`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError


def dump_line(record: Mapping[str, Any]) -> str:
    """One record as strict JSON without a line break; ``ValueError`` for NaN or infinity."""
    return json.dumps(record, allow_nan=False, ensure_ascii=True)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write all records to a neighbour file, then rename it into place; ``StoreError`` if the disk refuses."""
    write_text(path, "".join(dump_line(record) + "\n" for record in records))


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically; ``StoreError`` names the file when the disk is full or not writable."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror or error}; nothing was changed") from error
