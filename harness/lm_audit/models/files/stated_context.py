"""How long a text a model takes, as its files say, without torch: known when cases are collected."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lm_audit.errors import HarnessError
from lm_audit.models.context import Attributes, context_window
from lm_audit.models.files.adapter_folder import read_adapter
from lm_audit.models.files.checkpoint import model_folder
from lm_audit.models.files.config_file import read_config
from lm_audit.models.files.gguf.header import read_header
from lm_audit.models.files.gguf.settings import stated_window
from lm_audit.models.files.hub import cached_snapshot, is_settled
from lm_audit.models.loading.spec import ModelSpec, parse_spec
from lm_audit.models.toy.smollm2 import find_smollm2


def stated_context(spec: str, *, trust_remote_code: bool = False) -> int | None:
    """The largest number of input tokens, None where the files here do not say or cannot be read.

    Read once in a process, and again where a file that says it changed. What loading would refuse is left to loading.
    The loaded model's own window decides in the end; the two agree wherever this one is known.
    """
    try:
        parsed = parse_spec(spec)
        return _remembered(parsed, trust_remote_code, _stamp(parsed))
    except (HarnessError, OSError):
        return None


@lru_cache(maxsize=64)
def _remembered(spec: ModelSpec, trust_remote_code: bool, stamp: object) -> int | None:
    try:
        return _stated(spec, trust_remote_code)
    except (HarnessError, OSError):
        return None


def _stamp(spec: ModelSpec) -> object:
    """What changes where another length may be stated: times and sizes of the files that state it."""
    if spec.kind == "hub":
        snapshot = cached_snapshot(spec.repo or "", spec.revision)
        return snapshot, is_settled(spec), None if snapshot is None else _states(snapshot)
    return None if spec.path is None else _states(spec.path)


def _states(path: Path) -> tuple[tuple[int, int, int], ...]:
    files = (path, path / "config.json", path / "adapter_config.json")
    known = [file.stat() for file in files if file.is_file()]
    return tuple((one.st_mtime_ns, one.st_ctime_ns, one.st_size) for one in known)


def _stated(spec: ModelSpec, trust_remote_code: bool) -> int | None:
    if spec.kind == "tiny":
        from lm_audit.models.toy.tiny import TinySettings

        return TinySettings().context
    if spec.kind == "smollm2":
        return _of_gguf(find_smollm2())
    if spec.kind == "gguf" and spec.path is not None:
        return _of_gguf(spec.path)
    if spec.kind == "folder" or spec.kind == "hub":
        folder = model_folder(spec) if spec.kind == "folder" or is_settled(spec) else _begun(spec)
        if folder is None:
            return None
        adapter = read_adapter(folder)
        if adapter is not None:
            return _stated(parse_spec(adapter.base), trust_remote_code)
        return context_window(Attributes(read_config(folder, trust_remote_code=trust_remote_code)))
    return None


def _begun(spec: ModelSpec) -> Path | None:
    """The snapshot of a model whose weights are yet to be fetched, where something else fetched its config already."""
    snapshot = cached_snapshot(spec.repo or "", spec.revision)
    return snapshot if snapshot is not None and (snapshot / "config.json").is_file() else None


def _of_gguf(path: Path) -> int | None:
    return stated_window(read_header(path), path)
