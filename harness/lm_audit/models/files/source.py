"""The files behind a model spec, found and checked without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.files.adapter_folder import CONFIG as ADAPTER_CONFIG
from lm_audit.models.files.checkpoint import (
    Adapter,
    Checkpoint,
    model_folder,
    read_adapter,
    read_checkpoint,
)
from lm_audit.models.files.gguf.file import check_gguf, converted_folder
from lm_audit.models.files.hub import is_settled
from lm_audit.models.loading.spec import ModelSpec, parse_spec
from lm_audit.models.toy.smollm2 import find_smollm2
from lm_audit.shared.textfiles import is_file

Spec = str | os.PathLike[str] | ModelSpec


@dataclass(frozen=True)
class Source:
    """Everything about a spec that was found out before torch: its checkpoint and, for a PEFT folder, its adapter."""

    spec: ModelSpec
    checkpoint: Checkpoint
    adapter: Adapter | None = None

    @property
    def state(self) -> tuple[str, ...]:
        """Name, size and times of every file that the model is made of: other values mean that it must be read anew."""
        folders = [self.checkpoint.folder, *([self.adapter.folder] if self.adapter else [])]
        files = [path for folder in folders for path in sorted(folder.iterdir()) if is_file(path)]
        states = [(path, path.stat()) for path in files]
        return tuple(f"{path} {one.st_size} {one.st_mtime_ns} {one.st_ctime_ns}" for path, one in states)

    @property
    def tokenizer_folder(self) -> Path:
        own = self.adapter is not None and self.adapter.has_tokenizer
        return self.adapter.folder if own and self.adapter else self.checkpoint.folder


def check_spec(spec: Spec, *, trust_remote_code: bool = False) -> ModelSpec:
    """The parsed spec, after every check of its files that needs no torch, no network and no conversion.

    Raises what :func:`load_model` would raise for these files. A hub id that is neither cached nor forbidden passes.
    """
    parsed = parse_spec(spec)
    if parsed.kind == "smollm2":
        find_smollm2()
    elif parsed.path is not None and parsed.kind == "gguf":
        check_gguf(parsed.path)
    elif parsed.kind == "folder" or (parsed.kind == "hub" and is_settled(parsed)):
        _check_folder(model_folder(parsed), trust_remote_code)
    return parsed


def _check_folder(folder: Path, trust_remote_code: bool) -> None:
    adapter = read_adapter(folder)
    if adapter is None:
        read_checkpoint(folder, trust_remote_code=trust_remote_code)
        return
    base = _base_of(adapter)
    if base.kind == "folder" or (base.kind == "hub" and is_settled(base)):
        _refuse_adapter(adapter, model_folder(base))
    check_spec(base, trust_remote_code=trust_remote_code)


def _base_of(adapter: Adapter) -> ModelSpec:
    """The spec of an adapter's base; ``ModelError`` for one behind a server, whose weights are not here."""
    base = parse_spec(adapter.base)
    if base.kind == "endpoint":
        raise ModelError(
            f"{adapter.folder / ADAPTER_CONFIG}: its base {adapter.base} is behind a server; expected a model whose"
            " weights are on this machine or on the hub"
        )
    return base


def _refuse_adapter(adapter: Adapter, base: Path) -> None:
    """``ModelError`` where the base of an adapter is an adapter: itself, one that leads back to it, or another."""
    if not is_file(base / ADAPTER_CONFIG) or read_adapter(base) is None:
        return
    what = "the adapter itself" if base.resolve() == adapter.folder.resolve() else "an adapter"
    raise ModelError(f"{adapter.folder / ADAPTER_CONFIG}: its base {adapter.base} is {what}; expected a whole model")


def find_source(spec: Spec, *, trust_remote_code: bool = False) -> Source:
    """The files behind ``spec``, checked; the embedded models and GGUF files are made or converted if need be."""
    parsed = parse_spec(spec)
    if parsed.kind == "endpoint":
        raise UsageError(f"{parsed.text}: a served model has no files here; expected weights on this machine")
    folder = _folder(parsed)
    adapter = read_adapter(folder)
    if adapter is None:
        return Source(parsed, read_checkpoint(folder, trust_remote_code=trust_remote_code))
    base = _base_of(adapter)
    base_folder = _folder(base)
    _refuse_adapter(adapter, base_folder)
    return Source(parsed, read_checkpoint(base_folder, trust_remote_code=trust_remote_code), adapter)


def _folder(spec: ModelSpec) -> Path:
    if spec.kind == "smollm2":
        return converted_folder(find_smollm2())
    if spec.kind == "gguf":
        assert spec.path is not None
        return converted_folder(spec.path)
    if spec.kind == "tiny":
        from lm_audit.models.toy.tiny import tiny_folder

        return tiny_folder(spec.seed)
    return model_folder(spec)
