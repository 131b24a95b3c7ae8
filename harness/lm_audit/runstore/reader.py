"""Reads the ledgers of a run line by line, leaving out what is damaged and saying so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.runstore.inside import content_inside, file_inside, files_below, refuse_huge
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.normalise import DEEPEST, restored, too_deep
from lm_audit.runstore.records import SCHEMA_VERSION, DamagedLine, PlannedCase
from lm_audit.shared.number_checks import is_number
from lm_audit.shared.sealed import unsealed
from lm_audit.shared.visible import shown as visible_in


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


def read_lines(folder: RunFolder, *, shown: bool = False) -> tuple[list[Line], list[DamagedLine]]:
    """All sound records of a run, file by file, and the damaged lines. ``StoreError`` where it is no run folder.

    With ``shown`` all text in them is visible (:mod:`lm_audit.shared.visible`), but for the paths of files. A line that
    is in two ledgers (a copy that somebody left in the folder) counts once.
    """
    if not folder.ledger.is_dir():
        raise StoreError(f"{folder.path} is not a run folder: it has no ledger/")
    contents: dict[str, list[bytes]] = {}
    damaged: list[DamagedLine] = []
    for name in files_below(folder.path, "ledger"):
        if name.endswith(".jsonl"):
            try:
                contents[name] = _split(content_inside(folder.path, name))
            except (OSError, StoreError) as error:
                damaged.append(DamagedLine(name, 0, unread(error)))
    for path in sorted(folder.ledger.glob("*.jsonl")):
        if path.is_dir() and not path.is_symlink():  # of a link it is said above
            damaged.append(DamagedLine(f"ledger/{path.name}", 0, "is a folder; a file of records is expected"))
    copies = _copies(contents)
    lines: list[Line] = []
    for name, raws in contents.items():
        if copies[name]:
            reason = (
                f"{len(copies[name])} lines are copies of lines in another ledger of this run or of earlier ones in "
                f"this, and count once"
            )
            damaged.append(DamagedLine(name, min(copies[name]), reason))
        for number, raw in enumerate(raws, 1):
            if raw.strip() and number not in copies[name]:
                entry = _line(name, number, raw, shown)
                lines.append(entry) if isinstance(entry, Line) else damaged.append(entry)
    return lines, damaged


def planned_ids(folder: RunFolder) -> frozenset[str]:
    """The ids of all cases that were selected, without reading what was measured; empty where no plan can be read."""
    found: set[str] = set()
    for name in files_below(folder.path, "ledger") if folder.ledger.is_dir() else ():
        with suppress(OSError, StoreError):
            path = file_inside(folder.path, name)
            refuse_huge(path)
            found |= _planned_in(path, name)
    return frozenset(found)


def _planned_in(path: Path, name: str) -> set[str]:
    found: set[str] = set()
    with path.open("rb") as handle:
        for raw in handle:
            if b'"kind":"plan"' in raw:
                line = _line(name, 0, raw, shown=False)
                cases = line.record.get("cases") if isinstance(line, Line) and line.kind == "plan" else None
                for case in cases if isinstance(cases, list) else ():
                    with suppress(TypeError, ValueError):
                        found.add(PlannedCase.from_json(case).case_id)
    return found


def unread(error: Exception) -> str:
    """Why a file was not read, as a reader of the report needs it."""
    reason = error.strerror if isinstance(error, OSError) else None
    return f"cannot be read: {reason}" if reason else str(error)


def _copies(contents: Mapping[str, list[bytes]]) -> dict[str, set[int]]:
    """By file the numbers of the lines that stand in a file, or before them in this one, too.

    The file with most lines has them, then by name.
    """
    copies: dict[str, set[int]] = {}
    seen: set[int] = set()
    for name in sorted(contents, key=lambda name: (-len(contents[name]), name)):
        copies[name] = set()
        for number, raw in enumerate(contents[name], 1):
            if hash(raw) in seen:
                copies[name].add(number)
            elif raw.strip():
                seen.add(hash(raw))
    return copies


def _split(content: bytes) -> list[bytes]:
    """The lines with their ends, which the last one lacks where its process was killed."""
    *whole, last = content.split(b"\n")
    return [*(line + b"\n" for line in whole), *([last] if last else [])]


def _line(name: str, number: int, raw: bytes, shown: bool) -> Line | DamagedLine:
    try:
        record = _record(raw)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        return DamagedLine(name, number, str(error))
    return Line(name, number, _visible(record) if shown and _SUSPECT.search(raw, 0, len(raw) - 1) else record)


_SUSPECT = re.compile(rb"\\[bfru]|[\x00-\x1f\x7f-\xff]")
"""What a line of JSON must hold for its text to hold anything that is not shown as it is."""

_PATHS = {"rows": "file", "artifact": "path"}
"""Fields by which files are opened."""


def _visible(record: Mapping[str, object]) -> dict[str, Any]:
    path = _PATHS.get(str(record["kind"]))
    return {name: value if name == path else visible_in(value) for name, value in record.items()}


def _record(raw: bytes) -> dict[str, Any]:
    if not raw.endswith(b"\n"):
        raise ValueError("torn: the line has no end, its process was killed while it wrote")
    record = parsed(unsealed(raw))
    if not isinstance(record, dict) or not {"v", "t", "kind"} <= record.keys():
        raise ValueError("not a ledger record: it must be an object with v, t and kind")
    if not isinstance(record["kind"], str):
        raise ValueError("not a ledger record: its kind must be text")
    if not _is_count(record["v"]):
        raise ValueError(f"schema version {record['v']!r} is not a whole number from 0")
    if record["v"] > SCHEMA_VERSION:
        raise ValueError(f"schema version {record['v']!r} is newer than {SCHEMA_VERSION}, the newest known here")
    for key, meaning in (("t", "time"), ("m", "monotonic time")):
        if key in record and not _is_number(record[key]):
            raise ValueError(f"{meaning} {record[key]!r} is not a number")
    if "s" in record and not _is_count(record["s"]):
        raise ValueError(f"session {record['s']!r} is not a whole number from 0")
    fields: dict[str, Any] = restored(record) if b'"$float"' in raw else record
    return fields


def _is_number(value: object) -> bool:
    return is_number(value) and abs(value) < 1e15


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def parsed(raw: bytes) -> Any:
    """What the JSON text ``raw`` holds; ``ValueError`` where it is none, or nested more deeply than is ever written."""
    try:
        value = json.loads(raw)
    except RecursionError as error:
        raise ValueError(f"not a record: nested more than {DEEPEST} levels deep") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and too_deep(value):
        raise ValueError(f"not a record: nested more than {DEEPEST} levels deep")
    return value


def read_rows(folder: Path, row_files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The item rows of an attempt, streamed; what cannot be read, or lies outside of the folder, is left out."""
    for name in row_files:
        with suppress(OSError, StoreError):  # OSError too from a disk that fails in the midst of a file.
            path = file_inside(folder, name)
            refuse_huge(path)
            with path.open("rb") as handle:
                for raw in handle:
                    if isinstance(row := _row(raw), dict):
                        yield row


def _row(raw: bytes) -> Any:
    try:
        return restored(parsed(raw))
    except (ValueError, TypeError):
        return None
