"""Putting a PEFT adapter into its base: all of it, as it was trained, and merged without a change of the answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import torch

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import untie
from lm_audit.models.files.adapter_folder import Adapter
from lm_audit.models.files.json_file import listed
from lm_audit.models.files.safetensors_file import TensorEntry, read_entries

_PROBE = 16


def with_adapter(module: CausalModule, adapter: Adapter) -> CausalModule:
    """``module`` with ``adapter`` merged into it, a plain causal model again.

    The embeddings first get the size for which the adapter was trained. Raises ``ModelError`` where a tensor of the
    adapter fits nothing, where one that its settings promise is not there, or where the merged model answers
    otherwise than base and adapter side by side.
    """
    entries = read_entries(adapter.weights)
    module = dequantised(module)
    _resize(module, adapter, entries)
    _check_biases(module, adapter, entries)
    wrapped = _attached(module, adapter)
    ids = _probe_ids(module)
    unmerged = _logits(wrapped, ids)
    with warnings.catch_warnings(action="ignore"), wrapped.disable_adapter():  # it warns that biases stay
        alone = _logits(wrapped, ids)
    if bool((unmerged == alone).all()) and not _touches_embeddings(module, adapter, entries):
        warnings.warn(
            f"{adapter.folder} changes nothing: its base {adapter.base} answers the same without it (weights of 0, as"
            " before training, or a scale of 0)",
            stacklevel=2,
        )
    repeated = bool(adapter.config.get("layer_replication"))  # layers that stand several times share their weights
    _give_biases(wrapped)
    untied = (repeated or _touches_embeddings(module, adapter, entries)) and _untie(wrapped)
    try:
        merged: CausalModule = wrapped.merge_and_unload()
    except (AttributeError, NotImplementedError, ValueError) as error:
        raise ModelError(f"{adapter.folder}: an adapter of type {adapter.kind} cannot be merged: {error}") from error
    if untied:
        merged.config.tie_word_embeddings = False
        merged.config.get_text_config().tie_word_embeddings = False
        untie(merged)
    _check_same(unmerged, _logits(merged, ids), merged, adapter)
    return merged


def dequantised(module: Any) -> CausalModule:
    """``module`` with plain weights where its method of quantising gives them back (bitsandbytes): what is merged into
    packed ones is rounded anew, and they cannot be trained.
    """
    plain = module
    if getattr(module, "hf_quantizer", None) is not None:
        with suppress(NotImplementedError):
            plain = module.dequantize()
    found: CausalModule = plain.eval().requires_grad_(False)
    return found


def passed_over(module: CausalModule) -> set[str]:
    """Names of linear layers that ``module`` never calls, though what holds them runs: it reads their weights itself
    (``dt_proj`` of Mamba and its kin), so that an adapter beside them does not act and is not trained.
    """
    called: set[torch.nn.Module] = set()
    handle = torch.nn.modules.module.register_module_forward_pre_hook(lambda part, _: called.add(part))
    try:
        _logits(module, _probe_ids(module))
    finally:
        handle.remove()
    parts = dict(module.named_modules())
    return {
        name
        for name, part in parts.items()
        if isinstance(part, torch.nn.Linear) and part not in called and parts[name.rpartition(".")[0]] in called
    }


def attached(module: CausalModule, adapter: Adapter) -> Any:
    """``module`` with ``adapter`` beside its own weights, to be trained on; the embeddings fit, nothing is missing or
    left over, or ``ModelError`` says what.
    """
    entries = read_entries(adapter.weights)
    _resize(module, adapter, entries)
    _check_biases(module, adapter, entries)
    return _attached(module, adapter, trainable=True)


def _attached(module: Any, adapter: Adapter, *, trainable: bool = False) -> Any:
    from peft import PeftModel

    how: dict[str, Any] = {"use_safetensors": True, "torch_device": "cpu", "is_trainable": trainable}
    try:
        wrapped: Any = PeftModel.from_pretrained(module, adapter.folder, **how)
        report = wrapped.load_adapter(adapter.folder, "default", **how)
    except KeyError as error:
        raise ModelError(f"{adapter.weights} lacks {error}, which its settings promise") from error
    missing = sorted(_without_other_names(wrapped, report.missing_keys))
    problems = [
        *([f"missing: {listed(missing)}"] if missing else []),
        *([f"fit nothing: {listed(sorted(report.unexpected_keys))}"] if report.unexpected_keys else []),
    ]
    if problems:
        raise ModelError(f"{adapter.weights} does not fit its base {adapter.base}; {'; '.join(problems)}")
    return wrapped.eval()


def _without_other_names(wrapped: Any, names: Iterable[str]) -> set[str]:
    """Without other names of a tensor that was read under its own, as VB-LoRA's layers have for their common bank."""
    every = dict(wrapped.named_parameters(remove_duplicate=False)) | dict(wrapped.named_buffers(remove_duplicate=False))
    absent = set(names)
    read = {id(value) for name, value in every.items() if name not in absent}
    return {name for name in absent if id(every.get(name)) not in read}


def _resize(module: CausalModule, adapter: Adapter, entries: list[TensorEntry]) -> None:
    """Give the embeddings the number of rows for which the adapter was trained, where that is another one."""
    rows = int(module.get_input_embeddings().num_embeddings)
    sizes = {name: _vocabulary(name, entries) for name in _embedding_names(module)}
    wanted = {size for size, _ in sizes.values() if size is not None} - {rows}
    if not wanted:
        return
    if len(wanted) > 1:
        raise ModelError(f"{adapter.weights} holds embeddings of {sorted(wanted)} rows; its base has {rows}")
    size = wanted.pop()
    tied = len(sizes) == 1 or _is_tied(module)
    whole = [held for _, held in sizes.values()]
    if size > rows and not (any(whole) if tied else all(whole)):
        raise ModelError(
            f"{adapter.weights} was trained on a base of {size} tokens, which has {rows}: the embeddings of the added"
            " ones are not in the adapter; save it with save_embedding_layers=True, or name the resized base"
        )
    resizable: Any = module  # of transformers, where every adapter's base comes from
    resizable.resize_token_embeddings(size, mean_resizing=False)


def _give_biases(wrapped: Any) -> None:
    """Give layers without a bias one of 0 where the adapter has its own (``lora_bias``), for it to be merged into."""
    for part in wrapped.modules():
        if any(getattr(part, "lora_bias", {}).values()) and part.get_base_layer().bias is None:
            weight = part.get_base_layer().weight
            part.get_base_layer().bias = torch.nn.Parameter(weight.new_zeros(weight.shape[0]), requires_grad=False)


def _check_biases(module: Any, adapter: Adapter, entries: list[TensorEntry]) -> None:
    """``ModelError`` where a trained bias is not in the file: PEFT does not miss it, and the base's would stay."""
    trained = str(adapter.config.get("bias") or "none")
    held = {_plain(entry.name) for entry in entries}
    biases = {name for name, _ in module.named_parameters() if name.endswith(".bias")} if trained != "none" else set()
    if trained.endswith("_only"):  # those of the layers that have an adapter
        biases = {name for name in biases if any(one.startswith(name.removesuffix("bias")) for one in held)}
    if lost := sorted(biases - held):
        raise ModelError(
            f"{adapter.weights} lacks the biases {listed(lost)}, which its settings promise (bias = {trained!r}):"
            " save it again with a PEFT that keeps them, or set bias to none to take it without"
        )


def _vocabulary(module_name: str, entries: list[TensorEntry]) -> tuple[int | None, bool]:
    """The rows that the adapter's tensors for an embedding have, and whether the whole table is among them."""
    found, whole = None, False
    for entry in entries:
        plain = _plain(entry.name)
        if plain == f"{module_name}.weight" and len(entry.shape) == 2:
            found, whole = entry.shape[0], True
        elif plain == f"{module_name}.lora_embedding_A" and found is None:
            found = entry.shape[1]
        elif plain == f"{module_name}.lora_B.weight" and found is None:
            found = entry.shape[0]
    return found, whole


def _plain(key: str) -> str:
    """A key of an adapter file as the base spells the module, without PEFT's wrappers."""
    parts = key.removeprefix("base_model.model.").split(".")
    return ".".join(
        part for part in parts if part not in ("base_layer", "modules_to_save", "default", "original_module")
    )


def _embedding_names(module: CausalModule) -> list[str]:
    """Names of the input embedding and, where it is another module, of the head."""
    ends = {id(end) for end in (module.get_input_embeddings(), module.get_output_embeddings()) if end is not None}
    return [name for name, part in module.named_modules() if id(part) in ends]


def _is_tied(module: CausalModule) -> bool:
    head, table = module.get_output_embeddings(), module.get_input_embeddings()
    return head is not None and head.weight is table.weight


def _touches_embeddings(module: CausalModule, adapter: Adapter, entries: list[TensorEntry]) -> bool:
    base = module.get_base_model() if hasattr(module, "get_base_model") else module
    names = {name.split(".")[-1] for name in _embedding_names(base)} | {"embed_tokens", "lm_head"}
    return bool(adapter.config.get("trainable_token_indices")) or any(
        part in names for entry in entries for part in entry.name.split(".")
    )


def _untie(wrapped: Any) -> bool:
    """Give every module that shares a weight with another its own copy: merging into one must not change the other."""
    owners: dict[int, list[tuple[Any, str]]] = {}
    for part in wrapped.modules():
        for name, value in part.named_parameters(recurse=False):
            owners.setdefault(id(value), []).append((part, name))
    shared = [places for places in owners.values() if len({id(part) for part, _ in places}) > 1]
    for places in shared:
        for part, name in places[1:]:
            setattr(part, name, torch.nn.Parameter(getattr(part, name).detach().clone(), requires_grad=False))
    return bool(shared)


def _probe_ids(module: CausalModule) -> torch.Tensor:
    """Ids from all over the vocabulary, the last included: added tokens stand at its end."""
    last = int(module.get_input_embeddings().weight.shape[0]) - 1
    return torch.tensor([[round(place * last / (_PROBE - 1)) for place in range(_PROBE)]])


@torch.inference_mode()
def _logits(module: CausalModule, ids: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = module(input_ids=ids.to(module.device), use_cache=False).logits
    return logits.float()


def _check_same(unmerged: torch.Tensor, merged: torch.Tensor, module: CausalModule, adapter: Adapter) -> None:
    share = 2e-3 if module.dtype in (torch.float32, torch.float64) else 0.1
    off = float((unmerged - merged).abs().max())
    scale = float(unmerged.abs().max())
    if not off <= share * max(scale, 1e-6):
        held = {_plain(entry.name) for entry in read_entries(adapter.weights)}
        idle = sorted(name for name in passed_over(module) if any(one.startswith(f"{name}.") for one in held))
        why = (
            f"; {type(module).__name__} reads the weights of {listed(idle)} past any adapter, so that it acts there in"
            " the merged model alone"
        )
        raise ModelError(
            f"{adapter.folder}: merged into its base {adapter.base} it answers otherwise than beside it (logits of up"
            f" to {scale:.3g} move by {off:.3g}{why if idle else ''}); merge it yourself and name the merged folder"
        )
