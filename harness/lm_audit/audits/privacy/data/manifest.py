"""The manifest: which canaries exist, which were trained on, and in which files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lm_audit.audits.privacy.data.canaries import Canary, controls, members
from lm_audit.audits.privacy.data.jsonl import write_lines, write_text
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import json_lines
from lm_audit.shared.visible import is_blank

SCHEMA = 1
OWN_FAMILY = "own"
"""The family of canaries that somebody wrote: nothing is known of the form of their secrets."""


@dataclass(frozen=True)
class TrainingFile:
    """A file that a stage was trained on: path relative to the manifest, what it is, and its SHA-256."""

    path: str
    purpose: str
    sha256: str
    rows: int


@dataclass(frozen=True)
class Manifest:
    """Canaries with their roles, and the training files that were made with them.

    ``assignment`` is ``"fixed"`` (a set number of members) or ``"coins"`` (independent fair coins, which alone allow a
    one-run epsilon). ``folder`` is where the manifest was read from; training files are found relative to it.
    """

    canaries: tuple[Canary, ...]
    seed: int
    assignment: str = "fixed"
    files: tuple[TrainingFile, ...] = ()
    folder: Path = field(default=Path(), compare=False)

    @property
    def members(self) -> list[Canary]:
        """Canaries that are in the training text."""
        return members(self.canaries)

    @property
    def controls(self) -> list[Canary]:
        """Held-out twins."""
        return controls(self.canaries)

    @property
    def sha256(self) -> str:
        """Hash over texts, roles and repetitions, in order."""
        lines = [f"{c.sha256} {c.role} {c.repetitions}" for c in self.canaries]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(manifest: Manifest, path: str | Path) -> None:
    """Write a header line, then one line a canary."""
    header = {
        "kind": "manifest",
        "schema": SCHEMA,
        "seed": manifest.seed,
        "assignment": manifest.assignment,
        "canaries_sha256": manifest.sha256,
        "files": [vars(file) for file in manifest.files],
    }
    write_lines(Path(path), [header, *(_to_record(canary) for canary in manifest.canaries)])


def read_manifest(path: str | Path) -> Manifest:
    """The manifest as it was written, by :func:`write_manifest` or by hand: then without hashes, family and span.

    ``DataError`` names the line and field that breaks the format.
    """
    path = Path(path)
    lines = list(json_lines(path))
    if not lines or lines[0][1].get("kind") != "manifest":
        message = f'the first line must be a manifest header: {{"kind": "manifest", "schema": {SCHEMA}}}'
        raise DataError(message, file=path, row=1)
    header = lines[0][1]
    if header.get("schema") != SCHEMA or isinstance(header["schema"], bool):
        raise DataError(f"schema {header.get('schema')!r} is not known, {SCHEMA} is", file=path, row=1, field="schema")
    canaries = tuple(_from_record(record, path, number) for number, record in lines[1:])
    if not canaries:
        raise DataError("the manifest holds no canary", file=path)
    seed, assignment = header.get("seed", 0), header.get("assignment", "fixed")
    if not _is_count(seed):
        raise DataError(f"a whole number is needed, found {seed!r}", file=path, row=1, field="seed")
    if assignment not in ("fixed", "coins"):
        raise DataError(f"must be 'fixed' or 'coins', got {assignment!r}", file=path, row=1, field="assignment")
    manifest = Manifest(canaries, seed, assignment, _training_files(header.get("files", []), path), path.parent)
    _check_unique(manifest, path)
    levels = {canary.repetitions for canary in manifest.members}
    if assignment == "coins" and len(levels) > 1:
        raise DataError(
            f"coins include every canary equally often, and the members are repeated {sorted(levels)} times",
            file=path,
            row=1,
            field="assignment",
        )
    if header.get("canaries_sha256", manifest.sha256) != manifest.sha256:
        raise DataError("the canaries were changed after the manifest was written (hash differs)", file=path, row=1)
    return manifest


def write_canary_text(canaries: Sequence[Canary], path: Path) -> None:
    """Member texts, one a line, without any prefix; ``UsageError`` if a text holds a line break (use the manifest)."""
    for canary in canaries:
        if len(canary.text.splitlines()) != 1:
            raise UsageError(f"canary {canary.id} holds a line break; the text format cannot carry it, the JSONL can")
    write_text(path, "".join(f"{canary.text}\n" for canary in canaries))


def _to_record(canary: Canary) -> dict[str, Any]:
    return {"kind": "canary", **vars(canary), "secret_span": list(canary.secret_span), "sha256": canary.sha256}


def _from_record(record: Mapping[str, Any], path: Path, number: int) -> Canary:
    names = ("id", "family", "text", "secret", "secret_span", "role", "repetitions")
    record = {"family": OWN_FAMILY} | dict(record)
    if "secret_span" not in record:
        record["secret_span"] = _only_place(record, path, number)
    for name in names:
        if name not in record:
            raise DataError("this field is missing", file=path, row=number, field=name)
    for name in ("id", "family", "text", "secret", "role"):
        if not isinstance(record[name], str):
            raise DataError(f"a string is needed, found {record[name]!r}", file=path, row=number, field=name)
        if name in ("id", "family") and is_blank(record[name]):
            raise DataError("is empty", file=path, row=number, field=name)
    if record.get("kind", "canary") != "canary":
        raise DataError(f"'canary' is expected, found {record['kind']!r:.80}", file=path, row=number, field="kind")
    if not _is_count(record["repetitions"]):
        message = f"a whole number of at least 0 is needed, found {record['repetitions']!r}"
        raise DataError(message, file=path, row=number, field="repetitions")
    span = record["secret_span"]
    if not isinstance(span, list) or len(span) != 2 or not all(map(_is_count, span)):
        message = f"two whole numbers are needed (start, end), found {span!r}"
        raise DataError(message, file=path, row=number, field="secret_span")
    canary = Canary(**{name: record[name] for name in names} | {"secret_span": (span[0], span[1])})
    _check_canary(canary, record, path, number)
    return canary


def _only_place(record: Mapping[str, Any], path: Path, number: int) -> list[int]:
    """Where the secret stands in a text that holds it once."""
    for name in ("text", "secret"):
        if not isinstance(record.get(name), str) or not record[name]:
            raise DataError("a text is needed", file=path, row=number, field=name)
    text, secret = record["text"], record["secret"]
    start = text.find(secret)
    if start < 0 or text.find(secret, start + 1) >= 0:
        found = (
            "stands in its text more than once; give secret_span, [start, end]" if start >= 0 else "is not in its text"
        )
        raise DataError(f"{secret!r:.80} {found}", file=path, row=number, field="secret")
    return [start, start + len(secret)]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _training_files(entries: object, path: Path) -> tuple[TrainingFile, ...]:
    kinds = {"path": str, "purpose": str, "sha256": str, "rows": int}
    if not isinstance(entries, list):
        raise DataError(f"a list is needed, found {type(entries).__name__}", file=path, row=1, field="files")
    for entry in entries:
        known = isinstance(entry, dict) and entry.keys() == kinds.keys()
        if (
            not known
            or not all(isinstance(entry[name], kind) for name, kind in kinds.items())
            or not _is_count(entry["rows"])
        ):
            message = f"each file needs {', '.join(kinds)}, found {str(entry)[:80]}"
            raise DataError(message, file=path, row=1, field="files")
        if not entry["path"] or "\0" in entry["path"]:
            raise DataError(f"{entry['path']!r} names no file", file=path, row=1, field="files")
    return tuple(TrainingFile(**entry) for entry in entries)


def _check_canary(canary: Canary, record: Mapping[str, object], path: Path, number: int) -> None:
    start, end = canary.secret_span
    if canary.text[start:end] != canary.secret or not canary.secret:
        found = canary.text[start:end]
        raise DataError(f"{found!r} is not the secret {canary.secret!r}", file=path, row=number, field="secret_span")
    if canary.role not in ("member", "control"):
        raise DataError(f"must be 'member' or 'control', got {canary.role!r}", file=path, row=number, field="role")
    if (canary.role == "member") != (canary.repetitions > 0):
        message = f"{canary.repetitions} does not go with role {canary.role!r} (members 1 or more, controls 0)"
        raise DataError(message, file=path, row=number, field="repetitions")
    if "sha256" in record and record["sha256"] != canary.sha256:
        raise DataError("the text was changed (hash differs)", file=path, row=number, field="sha256")


def _check_unique(manifest: Manifest, path: Path) -> None:
    for name in ("id", "text", "secret"):
        seen: dict[str, int] = {}
        for row, canary in enumerate(manifest.canaries, 2):
            value = getattr(canary, name)
            if value in seen:
                raise DataError(f"{value!r} is already on line {seen[value]}", file=path, row=row, field=name)
            seen[value] = row
