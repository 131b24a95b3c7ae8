"""Strict JSON lines: what is written reads back equal, and a file is either the old one or the new one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, StoreError


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


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Pairs (1-based line number, record); ``DataError`` for a missing file, bad JSON or a line that is no object."""
    if not path.is_file():
        raise DataError("there is no such file", file=path)
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            yield number, _parse(line, path, number)


def _parse(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"this is no JSON ({error.msg}): {line[:60]!r}", file=path, row=number) from error
    if not isinstance(record, dict):
        raise DataError(f"a JSON object is needed, found {type(record).__name__}", file=path, row=number)
    return record
