"""Random models of several architectures as GGUF files, with the names and changes of llama.cpp's converter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.models.files.small_gguf import CONTEXT, add_sentencepiece, add_tokenizer
from tests.models.scoring.small_models import VOCABULARY

SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "initializer_range": 0.3,
}
STATED: dict[str, Any] = {
    "context_length": CONTEXT,
    "embedding_length": 32,
    "block_count": 2,
    "feed_forward_length": 48,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 10000.0,
}
Stored = Callable[[str, np.ndarray], np.ndarray]
Split = Callable[[str, np.ndarray], Mapping[str, np.ndarray]]


def random_model(config: Any) -> Any:
    """The model of a configuration whose norms and biases are spread, so that mistakes show."""
    from transformers import AutoModelForCausalLM

    build: Callable[..., Any] = AutoModelForCausalLM.from_config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = build(config).eval()
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.ndim == 1:
                    parameter.add_(0.2 * torch.randn(parameter.shape))
    return module


def export_gguf(
    path: Path,
    module: Any,
    architecture: str,
    stated: Mapping[str, Any],
    stored: Stored | None = None,
    *,
    byte_level: bool | None = None,
) -> Path:
    """``module`` as a file of ``architecture`` that states ``stated``; ``stored`` changes tensors by name.

    Its tokens are bytes, or pieces where it is one of Gemma's, unless ``byte_level`` says otherwise.
    """
    from gguf import MODEL_ARCH_NAMES, GGUFWriter, get_tensor_name_map

    writer: Any = GGUFWriter(path, architecture)
    if not (byte_level if byte_level is not None else not architecture.startswith("gemma")):
        add_sentencepiece(writer)
    else:
        add_tokenizer(writer, "gpt-2")
    writer.add_pad_token_id(0)
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in stated.items():
        add[type(value)](f"{architecture}.{key}", value)
    number = next(one for one, name in MODEL_ARCH_NAMES.items() if name == architecture)
    names = get_tensor_name_map(number, 64)
    tied = set(getattr(module, "all_tied_weights_keys", None) or ())
    for own, tensor in module.state_dict().items():
        if own in tied or own.endswith((".attn.bias", "masked_bias")):
            continue
        for name, value in _placed(own, tensor.float().numpy(), names):
            writer.add_tensor(name, np.ascontiguousarray(stored(name, value) if stored else value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _placed(own: str, value: np.ndarray, names: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of a tensor in the file, where gate and up of experts lie apart."""
    layer = own.split(".")[2] if own.startswith("model.layers.") else ""
    if own.endswith("experts.gate_up_proj"):
        half = value.shape[1] // 2
        yield f"blk.{layer}.ffn_gate_exps.weight", value[:, :half]
        yield f"blk.{layer}.ffn_up_exps.weight", value[:, half:]
    elif own.endswith("experts.down_proj"):
        yield f"blk.{layer}.ffn_down_exps.weight", value
    elif own.endswith("mlp.gate.weight"):
        yield f"blk.{layer}.ffn_gate_inp.weight", value
    elif own.endswith("shared_expert_gate.weight"):
        yield f"blk.{layer}.ffn_gate_inp_shexp.weight", value[0]
    else:
        yield names.get_name(own, try_suffixes=(".weight", ".bias")), value


def export_saved(
    path: Path, module: Any, architecture: str, stated: Mapping[str, Any], split: Split | None = None
) -> Path:
    """``module`` as a file of ``architecture``, from the tensors that ``save_pretrained`` writes.

    Experts, one tensor each there, lie in one. ``split`` gives other tensors for one, under names of the file
    (``blk...``) or of the model.
    """
    from gguf import MODEL_ARCH_NAMES, GGUFWriter, get_tensor_name_map
    from safetensors.numpy import load_file

    folder = path.with_suffix("")
    module.save_pretrained(folder)
    writer: Any = GGUFWriter(path, architecture)
    add_tokenizer(writer, "gpt-2")
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in stated.items():
        whole = key.replace("/", "") if key.startswith("/") else f"{architecture}.{key}"
        add.get(type(value), writer.add_array)(whole, value)
    names = get_tensor_name_map(next(n for n, name in MODEL_ARCH_NAMES.items() if name == architecture), 64)
    for own, tensor in _experts_together(load_file(folder / "model.safetensors")).items():
        for name, value in (split(own, tensor) if split else {own: tensor}).items():
            placed = name if name.startswith("blk") else names.get_name(_spelt(name), try_suffixes=(".weight", ".bias"))
            writer.add_tensor(placed, np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _experts_together(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found: dict[str, Any] = {}
    for name in sorted(tensors, key=lambda name: [int(part) if part.isdigit() else 0 for part in name.split(".")]):
        match = re.fullmatch(r"(.*experts)\.\d+\.(.*)", name)
        if match:
            found.setdefault(f"{match[1]}.{match[2]}", []).append(tensors[name])
        else:
            found[name] = tensors[name]
    return {name: np.stack(value) if isinstance(value, list) else value for name, value in found.items()}


def _spelt(name: str) -> str:
    """As llama.cpp's converter spells names that have no ending."""
    return name.replace("e_score_correction_bias", "e_score_correction.bias").replace("sinks", "sinks.weight")
