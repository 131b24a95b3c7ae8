"""Whether runs are parts of one: the same models, sizes, seeds, versions and selection, and no case twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError, UsageError
from lm_audit.runstore.inside import file_inside, files_below, relative_name
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import read_lines
from lm_audit.runstore.records import Run
from lm_audit.runstore.run import read_run
from lm_audit.runstore.soundness.beside import told_damage
from lm_audit.shared.reached import package_versions
from lm_audit.shared.stated_options import differences

PACKAGES = ("pytest-lm-audit", *package_versions.PACKAGES)
"""Packages whose versions must be the same in all parts, since the numbers depend on them."""


@dataclass(frozen=True, order=True)
class ShardMark:
    """Which part of what a run is: the ``index``-th of ``of`` parts of ``cases`` cases with one ``digest``."""

    index: int
    of: int
    cases: int
    digest: str


@dataclass(frozen=True)
class Member:
    """A run that is to be merged, and the shards that it holds (several if it is a merged run itself)."""

    run: Run
    shards: frozenset[ShardMark]

    @property
    def name(self) -> str:
        """How messages call the run: by its shard, if it is one."""
        parts = ", ".join(f"{mark.index}/{mark.of}" for mark in sorted(self.shards))
        return f"{self.run.run_id} (shard {parts})" if parts else self.run.run_id


def member(folder: Path) -> Member:
    """The run in ``folder`` with its shards.

    ``StoreError`` where it is no run, where its ``run.json`` is damaged or lost, and where a file of it, or a path in
    its ledgers, leads out of the folder: a merge copies the parts of others, and nothing else of this machine.
    """
    where = RunFolder(folder.resolve())
    lines, _ = read_lines(where)
    try:
        for name in copied_files(where):
            file_inside(where.path, name)
        for line in lines:
            for kind, field in (("rows", "file"), ("artifact", "path")):
                if line.kind == kind and isinstance(line.record.get(field), str):
                    relative_name(line.record[field])
    except (OSError, StoreError) as error:
        raise StoreError(f"cannot merge {where.path}: {error}") from error
    marks = [line.record["shard"] for line in lines if line.kind == "plan" and line.record.get("shard")]
    try:
        shards = frozenset(ShardMark(**mark) for mark in marks)
        _ = sorted(shards)
    except TypeError as error:
        raise StoreError(f"cannot merge {where.path}: what its plan says of shards is damaged ({error})") from error
    run = read_run(folder)
    lost = next((one for one in run.damaged if one.file == where.run_json.name), None)
    if lost is not None:
        raise StoreError(
            f"cannot merge {where.path}: {lost.file}: {lost.reason}; whether it is a part of the same run is unknown,"
            " and the merged run would not show it"
        )
    return Member(run, shards)


def copied_files(where: RunFolder) -> tuple[str, ...]:
    """The files of a run that a merge takes along, by their paths in its folder."""
    ledgers = (name for name in files_below(where.path, "ledger") if name.endswith(".jsonl"))
    return (*ledgers, *files_below(where.path, "rows"), *files_below(where.path, "artifacts"))


def missing_shards(members: Sequence[Member]) -> tuple[int, ...]:
    """The indices of shards that no member holds though they have cases; empty for runs that are no shards.

    With more shards than cases some shards are empty, and leave no run.
    """
    marks = {mark for one in members for mark in one.shards}
    if sum(len(one.run.planned) for one in members) == max((mark.cases for mark in marks), default=0):
        return ()
    of = max((mark.of for mark in marks), default=0)
    return tuple(index for index in range(1, of + 1) if index not in {mark.index for mark in marks})


def check_kin(members: Sequence[Member]) -> None:
    """Raise ``UsageError`` with the reason unless the runs can be one run."""
    if not members:
        raise UsageError("cannot merge: no run is named")
    for one in members:
        if not one.run.planned and not one.shards:
            why = told_damage(one.run.damaged) if one.run.damaged else "no case was ever selected in it"
            raise UsageError(f"cannot merge {one.name}: it holds no plan, {why}")
    for one, other in combinations(members, 2):
        reason = _foreign(one, other) or _overlap(one, other)
        if reason:
            raise UsageError(f"cannot merge {one.name} and {other.name}: {reason}")


def _foreign(one: Member, other: Member) -> str | None:
    """Why two runs do not belong together, None where they do."""
    ours, theirs = one.run.metadata, other.run.metadata
    found = [
        *map(str, differences(ours.get("options") or {}, theirs.get("options") or {})),
        *_differences("option --", ours.get("options"), theirs.get("options"), ("devices",)),
        *_differences("version of ", ours.get("versions"), theirs.get("versions"), PACKAGES),
        *_differences("", ours, theirs, ("git_commit", "schema_version", "code_version")),
        *_differences("code that ran ", code_by_file(one.run), code_by_file(other.run)),
        *_differences("what was read of ", files_read(one.run), files_read(other.run)),
        *_differences("fingerprint of model ", _fingerprints(one.run), _fingerprints(other.run)),
    ]
    return found[0] if found else _other_selection(one.shards, other.shards)


def _differences(what: str, ours: Any, theirs: Any, names: Iterable[str] | None = None) -> list[str]:
    """Sentences on what differs; without ``names`` on what both have."""
    ours, theirs = ours or {}, theirs or {}
    compared = names if names is not None else sorted(set(ours) & set(theirs))
    return [
        f"{what}{name} differs: {ours.get(name)!r} and {theirs.get(name)!r}"
        for name in compared
        if ours.get(name) != theirs.get(name)
    ]


def code_by_file(run: Run) -> Mapping[str, str]:
    """The code versions of the eval files by their paths; of a file that ran with several, all of them."""
    found: dict[str, set[str]] = {}
    for case in run.cases:
        if case.last.code_version:
            found.setdefault(case.case_id.partition("::")[0], set()).add(case.last.code_version)
    return {name: ", ".join(sorted(codes)) for name, codes in found.items()}


def files_read(run: Run) -> Mapping[str, str]:
    """Digests of the files that the cases' own code read, as they were in the sessions whose measurements stand."""
    stand = {(case.case_id.partition("::")[0], case.last.session) for case in run.cases}
    found: dict[str, set[str]] = {}
    for case in run.cases:
        for attempt in (case.last, *case.earlier):
            if (case.case_id.partition("::")[0], attempt.session) in stand:
                for name, digest in attempt.read.items():
                    found.setdefault(name, set()).add(digest[:16])
    return {name: ", ".join(sorted(digests)) for name, digests in found.items()}


def _fingerprints(run: Run) -> Mapping[str, str]:
    return {
        str(case.model): str(case.model_details["fingerprint"])
        for case in run.cases
        if case.model and case.model_details.get("fingerprint")
    }


def _other_selection(ours: frozenset[ShardMark], theirs: frozenset[ShardMark]) -> str | None:
    if bool(ours) != bool(theirs):
        return "one was run with --shard and the other was not"
    for mark in ours:
        for other in theirs:
            if mark.of != other.of:
                return f"they are parts of different divisions, by {mark.of} and by {other.of}"
            if mark.digest != other.digest:
                counts = f"{mark.cases} and {other.cases} cases"
                return (
                    f"they are parts of different selections ({counts}); run all shards with the same -m, -k and files"
                )
    return None


def _overlap(one: Member, other: Member) -> str | None:
    if one.run.folder == other.run.folder:
        return "they are the same run"
    common = sorted(set(one.run.planned) & set(other.run.planned))
    more = f" and {len(common) - 1} more" if len(common) > 1 else ""
    return f"they overlap: both hold {common[0]}{more}" if common else None
