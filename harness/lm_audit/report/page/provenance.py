"""Where the numbers come from: command line, versions, code, models, seeds, as titled groups of name and value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.report.wording.names import visible
from lm_audit.runstore.records import Run

Group = tuple[str, tuple[tuple[str, str], ...]]
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Command", ("command", "command_line", "argv", "rootdir", "cwd", "size", "seed", "seeds", "options", "data")),
    ("Code", ("git", "git_commit", "commit", "git_dirty", "version", "versions", "packages", "python")),
    ("Machine", ("platform", "hostname", "devices", "device", "cpu", "threads", "workers", "environment")),
)


def provenance(run: Run) -> tuple[Group, ...]:
    """What ``run.json`` and the models said of themselves; keys that are not known here are shown all the same."""
    metadata = dict(run.metadata)
    groups: list[Group] = []
    for title, keys in _SHAPES:
        entries = [pair for key in keys if key in metadata for pair in _flat(key, metadata.pop(key))]
        groups.append((title, tuple(entries)))
    groups.append(("Models", tuple(_models(run, metadata))))
    ledger = ("ledger schema", str(run.schema_version)), ("run folder", visible(run.folder.name))
    for known in ("run_id", "schema_version"):
        metadata.pop(known, None)
    sessions = metadata.pop("sessions", None)
    if isinstance(sessions, list) and len(sessions) > 1:
        metadata["sessions"] = [session.get("started") for session in sessions if isinstance(session, dict)]
    rest = [pair for key, value in metadata.items() for pair in _flat(key, value)]
    groups.append(("Run", (("run id", visible(run.run_id)), *ledger, *rest)))
    return tuple(group for group in groups if group[1])


def _models(run: Run, metadata: dict[str, Any]) -> Iterable[tuple[str, str]]:
    said: dict[str, Mapping[str, Any]] = {}
    for case in run.cases:
        if case.model and case.model_details:
            said.setdefault(case.ran_on, case.model_details)
    for name, details in said.items():
        shown = {key: value for key, value in details.items() if key not in ("attempt", "name", "told")}
        yield visible(name), ", ".join(f"{key} {_text(value)}" for key, value in shown.items())
    for key in ("models", "model", "fingerprints"):
        if key in metadata:
            yield from _flat(key, metadata.pop(key))


def _flat(key: str, value: object) -> Iterable[tuple[str, str]]:
    label = visible(key.replace("_", " "))
    if isinstance(value, Mapping) and value:
        for name, entry in value.items():
            yield f"{label} \u203a {visible(name)}", _text(entry)
    elif value is not None and value != {} and value != []:
        yield label, _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return visible(" ".join(value))
    return visible(json.dumps(value, ensure_ascii=False, sort_keys=True))
