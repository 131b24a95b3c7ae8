"""From a spec to a model in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.errors import HarnessError, ModelError
from lm_audit.models.checkpoint import (
    Adapter,
    Checkpoint,
    check_remote_code,
    model_folder,
    read_adapter,
    read_checkpoint,
)
from lm_audit.models.devices import check_device_name, dtype_name, resolve_device, resolve_dtype, torch_dtype
from lm_audit.models.digests import weights_digest
from lm_audit.models.gguf_file import check_gguf, converted_folder
from lm_audit.models.hub import is_settled
from lm_audit.models.smollm2 import find_smollm2
from lm_audit.models.spec import ModelSpec, parse_spec

if TYPE_CHECKING:
    import torch

    from lm_audit.models.language_model import LanguageModel

Spec = str | os.PathLike[str] | ModelSpec


@dataclass(frozen=True)
class Source:
    """Everything about a spec that was found out before torch: its checkpoint and, for a PEFT folder, its adapter."""

    spec: ModelSpec
    checkpoint: Checkpoint
    adapter: Adapter | None = None

    @property
    def tokenizer_folder(self) -> Path:
        own = self.adapter is not None and self.adapter.has_tokenizer
        return self.adapter.folder if own and self.adapter else self.checkpoint.folder


def load_model(
    spec: Spec, *, device: object = "auto", dtype: object = "auto", trust_remote_code: bool = False
) -> LanguageModel:
    """The model that ``spec`` names, ready to answer on ``device`` in ``dtype``.

    ``device``: auto (cuda, else mps, else cpu), cpu, cuda, cuda:N, mps. ``dtype``: auto (the checkpoint's on cuda and
    mps, float32 on CPU), float32, bfloat16, float16, float64. Weights on CPU are memory-mapped and shared by processes.
    Raises ``UsageError`` for an argument that cannot be used and ``ModelError`` for a checkpoint that cannot, both
    before weights are read. No network unless a hub id is not in the cache.
    """
    check_device_name(device)
    dtype_name(dtype)
    source = find_source(spec, trust_remote_code=trust_remote_code)
    target = resolve_device(device)
    name = resolve_dtype(dtype, target, source.checkpoint.dtype)
    module = _load_module(source, target, name, trust_remote_code)
    return _wrap(source, module, _load_tokenizer(source.tokenizer_folder, trust_remote_code))


def load_tokenizer(spec: Spec, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer of the model that ``spec`` names, without its weights."""
    parsed = parse_spec(spec)
    if parsed.kind == "hub":
        folder = model_folder(parsed)
        if (folder / "config.json").exists():
            check_remote_code(folder, trust_remote_code=trust_remote_code)
            return _load_tokenizer(folder, trust_remote_code)
    source = find_source(parsed, trust_remote_code=trust_remote_code)
    return _load_tokenizer(source.tokenizer_folder, trust_remote_code)


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
    else:
        check_spec(adapter.base, trust_remote_code=trust_remote_code)


def find_source(spec: Spec, *, trust_remote_code: bool = False) -> Source:
    """The files behind ``spec``, checked; the embedded models and GGUF files are made or converted if need be."""
    parsed = parse_spec(spec)
    folder = _folder(parsed)
    adapter = read_adapter(folder)
    if adapter is None:
        return Source(parsed, read_checkpoint(folder, trust_remote_code=trust_remote_code))
    base = parse_spec(adapter.base)
    base_folder = _folder(base)
    if read_adapter(base_folder) is not None:
        raise ModelError(f"{adapter.folder}: its base {adapter.base} is itself an adapter; expected a whole model")
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


def _load_module(source: Source, device: torch.device, dtype: str, trust_remote_code: bool) -> Any:
    from transformers import AutoModelForCausalLM

    from lm_audit.models.conversion import folder_in_dtype
    from lm_audit.models.quiet import quiet_transformers

    checkpoint = source.checkpoint
    folder = folder_in_dtype(checkpoint, dtype) if device.type == "cpu" else checkpoint.folder
    try:
        with quiet_transformers():
            module = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=torch_dtype(dtype),
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=trust_remote_code,
            )
            module = _with_adapter(module, source.adapter)
    except HarnessError:
        raise
    except (ValueError, KeyError, OSError, RuntimeError, ImportError) as error:
        raise ModelError(f"model {source.spec.text}: transformers cannot load it: {_one_line(error)}") from error
    return module.to(device).eval().requires_grad_(False)


def _with_adapter(module: Any, adapter: Adapter | None) -> Any:
    if adapter is None:
        return module
    from peft import PeftModel

    return PeftModel.from_pretrained(module, adapter.folder, use_safetensors=True).merge_and_unload()


def _load_tokenizer(folder: Path, trust_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    from lm_audit.models.quiet import quiet_transformers

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)
    except (ValueError, KeyError, OSError, ImportError, TypeError) as error:
        raise ModelError(f"{folder}: transformers cannot load the tokenizer: {_one_line(error)}") from error


def _wrap(source: Source, module: Any, tokenizer: Any) -> LanguageModel:
    from lm_audit.models.fingerprint import combine_fingerprint, tokenizer_digest
    from lm_audit.models.language_model import LanguageModel

    weights = weights_digest(source.checkpoint.weights)
    if source.adapter is not None:
        weights += f" {weights_digest([source.adapter.weights])} {source.adapter.settings}"
    fingerprint = combine_fingerprint(weights, tokenizer_digest(tokenizer))
    return LanguageModel(module, tokenizer, name=source.spec.name, fingerprint=fingerprint)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
