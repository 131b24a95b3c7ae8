"""From a spec to a model in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.adapter_folder import CONFIG as ADAPTER_CONFIG
from lm_audit.models.checkpoint import (
    Adapter,
    Checkpoint,
    check_remote_code,
    model_folder,
    read_adapter,
    read_checkpoint,
)
from lm_audit.models.devices import check_device_name, dtype_name, resolve_device, resolve_dtype
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.gguf_file import check_gguf, converted_folder
from lm_audit.models.hub import is_settled
from lm_audit.models.smollm2 import find_smollm2
from lm_audit.models.spec import ModelSpec, parse_spec
from lm_audit.textfiles import is_file

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Spec = str | os.PathLike[str] | ModelSpec


@dataclass(frozen=True)
class Source:
    """Everything about a spec that was found out before torch: its checkpoint and, for a PEFT folder, its adapter."""

    spec: ModelSpec
    checkpoint: Checkpoint
    adapter: Adapter | None = None

    @property
    def state(self) -> tuple[str, ...]:
        """Name, size and time of every file that the model is made of: other values mean that it must be read anew."""
        folders = [self.checkpoint.folder, *([self.adapter.folder] if self.adapter else [])]
        files = [path for folder in folders for path in sorted(folder.iterdir()) if is_file(path)]
        return tuple(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files)

    @property
    def tokenizer_folder(self) -> Path:
        own = self.adapter is not None and self.adapter.has_tokenizer
        return self.adapter.folder if own and self.adapter else self.checkpoint.folder


def load_model(
    spec: Spec,
    *,
    device: object = "auto",
    dtype: object = "auto",
    trust_remote_code: bool = False,
    endpoint: EndpointSettings | None = None,
) -> LanguageModel:
    """The model that ``spec`` names, ready to answer on ``device`` in ``dtype``.

    ``device``: auto (cuda, else mps, else cpu), cpu, cuda, cuda:N, mps. ``dtype``: auto (the checkpoint's on cuda and
    mps, float32 on CPU), float32, bfloat16, float16, float64. Weights on CPU are memory-mapped and shared by processes.
    Raises ``UsageError`` for an argument that cannot be used and ``ModelError`` for a checkpoint that cannot, both
    before weights are read, and ``ModelError`` where the weights are not those of the config, hold NaN, or belong to a
    model that does not read from left to right. No network unless a hub id is not in the cache, or ``spec`` names a
    server, which is asked what it can do and talked to as ``endpoint`` says; device and dtype are the server's then.
    """
    if (parsed := parse_spec(spec)).kind == "endpoint":
        from lm_audit.models.endpoint.connecting import connect

        return connect(parsed, endpoint or EndpointSettings())
    check_device_name(device)
    dtype_name(dtype)
    source = find_source(spec, trust_remote_code=trust_remote_code)
    target = resolve_device(device)
    name = resolve_dtype(dtype, target, source.checkpoint.dtype)
    from lm_audit.models.module import load_module, load_tokenizer_from, wrap

    tokenizer = load_tokenizer_from(source.tokenizer_folder, trust_remote_code)
    module = load_module(source.checkpoint, source.adapter, source.spec.text, target, name, trust_remote_code)
    return wrap(source, module, tokenizer)


def load_tokenizer(spec: Spec, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer of the model that ``spec`` names, without its weights."""
    from lm_audit.models.module import load_tokenizer_from

    parsed = parse_spec(spec)
    if parsed.kind == "endpoint":
        raise UsageError(f"{parsed.text}: the tokenizer of a served model comes with load_model")
    if parsed.kind == "hub":
        folder = model_folder(parsed)
        if (folder / "config.json").exists():
            check_remote_code(folder, trust_remote_code=trust_remote_code)
            return load_tokenizer_from(folder, trust_remote_code)
    source = find_source(parsed, trust_remote_code=trust_remote_code)
    return load_tokenizer_from(source.tokenizer_folder, trust_remote_code)


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
    base = parse_spec(adapter.base)
    if base.kind == "folder" or (base.kind == "hub" and is_settled(base)):
        _refuse_adapter(adapter, model_folder(base))
    check_spec(base, trust_remote_code=trust_remote_code)


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
    base = parse_spec(adapter.base)
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
        from lm_audit.models.tiny import tiny_folder

        return tiny_folder(spec.seed)
    return model_folder(spec)
