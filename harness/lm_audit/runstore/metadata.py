"""``run.json``, what a run was started with, and ``run_metadata.jsonl``, one line for every run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.records import SCHEMA_VERSION
from lm_audit.runstore.run_record import read_record, text_of
from lm_audit.runstore.soundness.belonging import RUN_OF_SESSION
from lm_audit.shared.code_version import code_version
from lm_audit.shared.reached.package_versions import versions
from lm_audit.shared.stated_options import joined
from lm_audit.shared.textfiles import replacing
from lm_audit.shared.textfiles.appending import open_to_append

MOMENT = "%Y-%m-%dT%H:%M:%S%z"
"""How ``run.json`` states times."""

_PACKAGES = ("pytest-lm-audit", "pytest", "pytest-xdist")
"""Packages that run cases; numbers hang on :data:`lm_audit.shared.reached.package_versions.PACKAGES`."""


def start(
    folder: RunFolder, *, command: Sequence[str], root: Path, options: Mapping[str, object], threads: str | None = None
) -> dict[str, Any]:
    """Write ``run.json``, or add a session to that of a resumed run; returns its content.

    ``threads`` is the number with which its cases compute, None where that is not the run's to say.
    """
    session = {
        "started": _now(),
        "command": list(command),
        "options": plain(options, "options"),
        "git_commit": _git_commit(root),
        "versions": _versions(),
        "code_version": code_version(),
        "platform": {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()},
        **({"threads": threads} if threads else {}),
    }
    begun = {"schema_version": SCHEMA_VERSION, "run_id": folder.run_id, **session}
    record = {"sessions": [], **(read_record(folder).whole or begun)}
    if record["sessions"] and isinstance(record.get("options"), dict):  # What was added since holds for the whole run.
        record["options"] = joined(record["options"], session["options"])
    record["sessions"].append({RUN_OF_SESSION: folder.run_id, **session})
    record |= {"run_id": folder.run_id, "finished": None}  # A copied run is a run of its own.
    _replace(folder.run_json, record)
    return record


def finish(folder: RunFolder, exitstatus: int, begun: Mapping[str, Any] | None = None, **extra: object) -> None:
    """Complete ``run.json`` and append the run's line to ``run_metadata.jsonl`` beside the run folders.

    ``begun`` is what :func:`start` wrote, for where that cannot be read again. ``StoreError`` where neither is known:
    what the run measures must not be replaced by nothing.
    """
    record = read_record(folder).whole or dict(begun or {})
    if not record:
        raise StoreError(f"cannot complete {folder.run_json}: it is absent or damaged")
    record |= {"finished": _now(), "exitstatus": exitstatus, **plain(extra, "extra")}
    _replace(folder.run_json, record)
    line = {name: value for name, value in record.items() if name != "sessions"}
    try:
        with os.fdopen(open_to_append(folder.path.parent / "run_metadata.jsonl"), "ab") as handle:
            handle.write(f"{json.dumps(line)}\n".encode("ascii"))
    except OSError as error:
        raise StoreError(f"cannot append to run_metadata.jsonl: {error.strerror or error}") from error


def _replace(path: Path, record: Mapping[str, object]) -> None:
    try:
        with replacing(path) as draft:
            draft.write_text(text_of(record), encoding="ascii")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def _now() -> str:
    return time.strftime(MOMENT)


def _versions() -> dict[str, str]:
    found = dict(versions())
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git_commit(root: Path) -> str | None:
    """The commit of the checkout, with ``+changes`` where the working tree differs; None outside of git."""
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}+changes" if changed else head


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True, timeout=10
    ).stdout.strip()
