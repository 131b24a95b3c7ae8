"""Reads the ledgers of a run line by line, leaving out what is damaged and saying so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.normalise import restored
from lm_audit.runstore.records import SCHEMA_VERSION, DamagedLine


@dataclass(frozen=True)
class Line:
    """One sound record: the ledger it is from, its line number (from 1), and its fields."""

    file: str
    number: int
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What is recorded."""
        return str(self.record["kind"])

    @property
    def time(self) -> float:
        """When it was recorded, in seconds since the epoch."""
        return float(self.record["t"])

    @property
    def session(self) -> int:
        """Which session of the run recorded it, from 1; 0 where an older version did not say."""
        return int(self.record.get("s", 0))

    @property
    def order(self) -> tuple[int, float]:
        """What records are sorted by: session and monotonic clock, where an older version has neither the time."""
        return self.session, float(self.record["m"] if "m" in self.record else self.record["t"])

    @property
    def worker(self) -> str:
        """The process that recorded it, ``<worker>-<pid>``."""
        return Path(self.file).stem


def read_lines(folder: RunFolder) -> tuple[list[Line], list[DamagedLine]]:
    """All sound records of a run, file by file, and the damaged lines. ``StoreError`` where it is no run folder."""
    if not folder.ledger.is_dir():
        raise StoreError(f"{folder.path} is not a run folder: it has no ledger/")
    lines: list[Line] = []
    damaged: list[DamagedLine] = []
    for path in sorted(folder.ledger.glob("*.jsonl")):
        for entry in _file_lines(path, f"ledger/{path.name}"):
            lines.append(entry) if isinstance(entry, Line) else damaged.append(entry)
    return lines, damaged


def _file_lines(path: Path, name: str) -> Iterator[Line | DamagedLine]:
    with path.open("rb") as handle:
        for number, raw in enumerate(handle, 1):
            if not raw.strip():
                continue
            try:
                yield Line(name, number, _record(raw))
            except (ValueError, KeyError, TypeError) as error:
                yield DamagedLine(name, number, str(error))


def _record(raw: bytes) -> dict[str, Any]:
    if not raw.endswith(b"\n"):
        raise ValueError("torn: the line has no end, its process was killed while it wrote")
    try:
        record = json.loads(raw)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(record, dict) or not {"v", "t", "kind"} <= record.keys():
        raise ValueError("not a ledger record: it must be an object with v, t and kind")
    if not isinstance(record["v"], int) or record["v"] > SCHEMA_VERSION:
        raise ValueError(f"schema version {record['v']!r} is newer than {SCHEMA_VERSION}, the newest known here")
    for key, meaning in (("t", "time"), ("s", "session"), ("m", "monotonic time")):
        if key in record and (not isinstance(record[key], int | float) or isinstance(record[key], bool)):
            raise ValueError(f"{meaning} {record[key]!r} is not a number")
    fields = restored(record)
    assert isinstance(fields, dict)
    return fields


def read_rows(folder: Path, row_files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The item rows of an attempt, streamed; lines that cannot be read are left out."""
    for name in row_files:
        path = folder / name
        if not path.is_file():
            continue
        with path.open("rb") as handle:
            for raw in handle:
                try:
                    row = restored(json.loads(raw))
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row
