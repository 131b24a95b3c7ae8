"""run_metadata.jsonl: one line for every step, appended so that no earlier line can be lost."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata as packages
from pathlib import Path
from typing import Any

from lm_audit.audits.privacy.data.jsonl import dump_line
from lm_audit.errors import StoreError, UsageError

KINDS = ("canary_generation", "data_preparation", "sft_training", "dpo_training", "dp_sft_training", "audit")
RESERVED = ("type", "timestamp", "git_commit", "git_dirty", "versions")
_PACKAGES = ("torch", "transformers", "trl", "peft", "opacus", "numpy")


def append_metadata(path: Path, kind: str, entry: Mapping[str, object]) -> None:
    """Append one entry with time, commit and package versions; the caller's mapping is not changed.

    A torn last line of an earlier crash is closed first, so that this entry stands on a line of its own.
    Raises ``UsageError`` for an unknown kind, a reserved key, or values that JSON does not give back unchanged;
    ``StoreError`` if the file cannot be written.
    """
    if kind not in KINDS:
        raise UsageError(f"metadata kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if taken := [key for key in RESERVED if key in entry]:
        raise UsageError(f"metadata keys {', '.join(taken)} are set by the log itself; rename them")
    _check_native(entry)
    _append_line(path, dump_line({"type": kind, **_provenance(), **copy.deepcopy(dict(entry))}))


def read_metadata(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """(entries, numbers of damaged lines); a missing file gives two empty lists."""
    entries: list[dict[str, Any]] = []
    damaged: list[int] = []
    if not path.is_file():
        return entries, damaged
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8"))
            entries.append({**record})
        except (ValueError, TypeError):
            damaged.append(number)
    return entries, damaged


def payload(entry: Mapping[str, object]) -> dict[str, Any]:
    """What the caller gave, without the keys that the log adds."""
    return {key: value for key, value in entry.items() if key not in RESERVED}


def _check_native(entry: Mapping[str, object]) -> None:
    try:
        same = json.loads(dump_line(entry)) == dict(entry)
    except (TypeError, ValueError) as error:
        raise UsageError(f"metadata must be plain JSON values: {error}") from error
    if not same:
        raise UsageError("metadata must be plain JSON values: tuples and keys that are no strings do not read back")


def _append_line(path: Path, line: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            block = (_break_if_torn(descriptor) + line + "\n").encode("utf-8")
            if os.write(descriptor, block) < len(block):
                raise OSError("the line was written in part only; is the disk full?")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot append to {path}: {error.strerror or error}") from error


def _break_if_torn(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return "" if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n" else "\n"


def _provenance() -> dict[str, Any]:
    commit, dirty = _git_state()
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "git_commit": commit,
        "git_dirty": dirty,
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
    }


def _git_state() -> tuple[str, bool | None]:
    folder = Path(__file__).resolve().parent
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=10)
        status = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown", None
    return (head.stdout.strip(), bool(status.stdout.strip())) if head.returncode == 0 else ("unknown", None)


def _version(name: str) -> str | None:
    try:
        return packages.version(name)
    except packages.PackageNotFoundError:
        return None
