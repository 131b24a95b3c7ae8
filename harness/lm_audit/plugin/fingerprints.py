"""Fingerprints: whether a case of an earlier session would measure the same today.

All without torch: a case is compared at collection, before anything is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lm_audit.code_version import code_version
from lm_audit.code_version import forget as forget_code
from lm_audit.errors import HarnessError
from lm_audit.plugin.markers import audit_of
from lm_audit.plugin.run_options import RunOptions
from lm_audit.plugin.selection import Selection, selection_of

_SMALL = 8 << 20
_PROSE = (".md", ".gitattributes", ".jpg", ".png")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def case_fingerprint(item: pytest.Item, options: RunOptions) -> str:
    """A hash (32 hex digits) of case id, model files, parameters, options, input files and :func:`code_version`."""
    selection = selection_of(item) or Selection()
    audit = audit_of(item)
    content = {
        "case": item.nodeid,
        "model": model_identity(selection.model.spec) if selection.model else None,
        "params": _plain(selection.case.params) if selection.case else {},
        "inputs": [_file_state(path) for path in _paths(selection.case.params)] if selection.case else [],
        "size": options.size,
        "seed": options.seed,
        "dtype": options.dtype,
        "chat": [options.chat, options.chat_settings.key],
        "data": {name: [where, _file_state(where)] for name, where in options.data.items()},
        "options": _plain(options.audit),
        "code": code_version(str(item.path), str(item.config.rootpath)),
        "fixtures": _folder_state(str(item.config.rootpath / "fixtures" / audit)) if audit else None,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def forget() -> None:
    """Look at files anew: they may have changed since an earlier session of this process."""
    forget_code()
    for remembered in (model_identity, _file_state, _folder_state):
        remembered.cache_clear()


@cache
def model_identity(spec: str) -> str:
    """What a spec stands for on this machine, from its files and without reading its weights.

    A folder is what its files hold, wherever it lies; a hub id is the files of its cached snapshot; an adapter is its
    own files and those of its base.
    """
    from lm_audit.models import parse_spec

    try:
        parsed = parse_spec(spec)
    except HarnessError:
        return f"absent {spec}"
    if parsed.kind == "hub":
        folder = _snapshot(parsed.repo or "", parsed.revision)
        return f"hub {parsed.repo}@{parsed.revision or 'main'}" if folder is None else f"folder {_model_state(folder)}"
    if parsed.kind == "folder" and parsed.path is not None:
        return f"folder {_model_state(parsed.path)}"
    if parsed.path is not None:
        return f"{parsed.kind} {_file_state(str(parsed.path))}"
    return f"{parsed.kind}:{parsed.seed}"


def _snapshot(repo: str, revision: str | None) -> Path | None:
    """The folder in which the local hub cache holds a branch, tag or commit."""
    from lm_audit.models.hub import cached_snapshot

    try:
        return cached_snapshot(repo, revision)
    except HarnessError:  # A broken cache is named when the model loads.
        return None


def _model_state(folder: Path) -> str:
    """All files that can change a model's answers, and of an adapter its base's too."""
    from lm_audit.models.adapter_folder import read_adapter

    state = _digest(line for line in _tree(folder, "*") if not line.split(" ")[0].lower().endswith(_PROSE))
    try:
        adapter = read_adapter(folder)
    except HarnessError:
        return state
    if adapter is None or _leads_to(adapter.base, folder):
        return state
    return f"{state} on {model_identity(adapter.base)}"


def _leads_to(base: str, folder: Path) -> bool:
    """Whether an adapter's base is itself or another adapter, which is refused when it loads."""
    from lm_audit.models import parse_spec

    try:
        path = parse_spec(base).path
    except HarnessError:
        return True
    return path is not None and (path.resolve() == folder.resolve() or (path / "adapter_config.json").is_file())


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text; an address in memory says nothing about a value."""
    return {name: _ADDRESS.sub("", repr(value)) for name, value in values.items()}


def _paths(values: Mapping[str, Any]) -> list[str]:
    texts = [str(value) for value in values.values() if isinstance(value, str | os.PathLike)]
    return sorted(text for text in texts if text and _exists(text))


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # A text that is too long or odd to be a path.
        return False


@cache
def _file_state(where: str) -> str:
    """The content of a file, the contents of a folder; a large file counts by its size and time. Else empty."""
    try:
        path = Path(where)
        if path.is_dir():
            return _folder_state(where)
        if not path.is_file():
            return ""
        return _state(path)
    except (OSError, ValueError):
        return ""


@cache
def _folder_state(where: str) -> str:
    return _digest(_tree(Path(where), "*"))


def _tree(folder: Path, pattern: str) -> Iterable[str]:
    for path in sorted(folder.rglob(pattern)):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{path.relative_to(folder).as_posix()} {_state(path)}"


def _state(path: Path) -> str:
    status = path.stat()
    if status.st_size > _SMALL:
        return f"{status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:32]
