"""Makes one run of many: shards of a SLURM array, of Kubernetes jobs, of a CI matrix.

The ledgers are copied, not rewritten: the merged run is read and reported like any other, and says where it came from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError, UsageError
from lm_audit.runstore import metadata
from lm_audit.runstore.inside import file_inside
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.merging.same_run import Member, check_kin, copied_files, member, missing_shards
from lm_audit.runstore.run_record import text_of
from lm_audit.runstore.soundness.belonging import RUNS_OF_PARTS, runs_of


@dataclass(frozen=True)
class Merged:
    """What a merge gave: the new run, how many cases it plans, and the shards that nobody handed in."""

    folder: Path
    cases: int
    missing_shards: tuple[int, ...]


def merge_runs(folders: Sequence[Path], out: Path, *, partial: bool = False) -> Merged:
    """One run in ``out`` made of the runs in ``folders``, which stay as they are.

    Raises ``UsageError`` where ``out`` exists already, where runs overlap or do not belong together (the message says
    why), and where shards are missing, unless ``partial``.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"cannot merge into {out}: it exists already; name a new folder with -o")
    members = [member(folder) for folder in folders]
    check_kin(members)
    missing = missing_shards(members)
    if missing and not partial:
        raise UsageError(_absent(members, missing))
    draft = RunFolder(out.with_name(f"{out.name}.{os.getpid()}.partial"))
    try:
        draft.create()
        for one in members:
            _copy(one, draft)
        _close(members, draft, out.name)
        _write_metadata(members, draft, out.name, missing)
        draft.path.replace(out)
    except OSError as error:
        raise StoreError(f"cannot write the merged run {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft.path, ignore_errors=True)
    metadata.finish(RunFolder(out), _exit_status(members))
    return Merged(out, sum(len(one.run.planned) for one in members), missing)


def _absent(members: Sequence[Member], missing: Sequence[int]) -> str:
    of = next(iter(members[0].shards)).of
    names = ", ".join(f"{index}/{of}" for index in missing)
    return (
        f"cannot merge: {len(missing)} of {of} shards are missing: {names}; run them, or leave them out with --partial"
    )


def _copy(one: Member, draft: RunFolder) -> None:
    """Copy a run's files. Ledgers get the run's id into their names: process ids repeat from machine to machine."""
    source = RunFolder(one.run.folder)
    tag = one.run.run_id.replace("-", "")
    for name in copied_files(source):
        path, kind = source.path / name, name.partition("/")[0]
        if kind == "ledger":
            worker, _, process = path.stem.rpartition("-")
            target = _fresh(draft.ledger / f"{worker}-{process}.{tag}.jsonl")
        else:
            target = _fresh(draft.path / name)
            target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file_inside(source.path, name), target)


def _fresh(target: Path) -> Path:
    if target.exists():
        raise StoreError(f"cannot merge: two runs hold a file {target.parent.name}/{target.name}")
    return target


def _close(members: Sequence[Member], draft: RunFolder, run_id: str) -> None:
    """Mark the merged run as finished only if all its parts are: the last mark in time counts."""
    ledger = Ledger(draft.ledger, "merge", session=1 + max(one.run.sessions for one in members))
    ledger.write("run_start", run=run_id, pid=os.getpid(), merged=[one.run.run_id for one in members])
    if all(one.run.finished for one in members):
        ledger.write("run_end", exitstatus=_exit_status(members), interrupted=False)
    ledger.sync()
    ledger.close()


def _exit_status(members: Sequence[Member]) -> int:
    return max(int(one.run.metadata.get("exitstatus") or 0) for one in members)


def _write_metadata(members: Sequence[Member], draft: RunFolder, run_id: str, missing: Sequence[int]) -> None:
    first = min(members, key=lambda one: str(one.run.metadata.get("started", "")))
    record: dict[str, Any] = dict(first.run.metadata)
    if isinstance(record.get("options"), dict):
        record["options"] = record["options"] | {"shard": None}  # The whole is no part.
    record |= {
        "run_id": run_id,
        "sessions": [session for one in members for session in one.run.metadata.get("sessions", ())],
        "merged_from": [one.run.run_id for one in members],
        RUNS_OF_PARTS: sorted(set().union(*(runs_of(one.run.metadata) for one in members))),
        "missing_shards": list(missing),
    }
    draft.run_json.write_text(text_of(record), encoding="ascii")
