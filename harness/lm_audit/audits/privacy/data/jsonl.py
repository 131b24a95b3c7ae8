"""Strict JSON lines: what is written reads back equal, and a file is either the old one or the new one.

Reading is :mod:`lm_audit.shared.textfiles`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.shared.textfiles import replacing


def dump_line(record: Mapping[str, object]) -> str:
    """One record as strict JSON without a line break; ``ValueError`` for NaN or infinity."""
    return json.dumps(record, allow_nan=False, ensure_ascii=True)


def write_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Write all records to a neighbour file, then rename it into place; ``StoreError`` if the disk refuses."""
    write_text(path, "".join(dump_line(record) + "\n" for record in records))


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically; ``StoreError`` names the file when the disk is full or not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, synced=True) as draft:
            draft.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; nothing was changed") from error
