"""What is known of one GGUF architecture: its configuration, and under which name each tensor of a layer is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lm_audit.models.files.gguf.header import GgufHeader

Arrays = dict[str, np.ndarray]
"""The tensors of one layer by what follows ``blk.N.`` in the file, or after a change by what follows ``layers.N.``."""
Settings = dict[str, Any]

PLAIN = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Llama's names, which most architectures have."""

HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}

EXPERTS = {
    "ffn_gate_inp": "mlp.gate",
    "exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
    "ffn_gate_exps": "mlp.experts.{}.gate_proj",
    "ffn_up_exps": "mlp.experts.{}.up_proj",
    "ffn_down_exps": "mlp.experts.{}.down_proj",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
"""DeepSeek's names; the experts, which lie in one tensor of the file, have one each."""

ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True)
class Recipe:
    """How a file of one architecture becomes a model of transformers, which llama.cpp's converter says in reverse."""

    model_type: Callable[[GgufHeader], str]
    settings: Callable[[GgufHeader], Settings]
    """What its configuration has beside the common sizes."""
    names: Mapping[str, str]
    """Of a layer's tensors: what follows ``blk.N.``, with its ending or without -> what follows ``model.layers.N.``."""
    ends: Mapping[str, str] = field(default_factory=lambda: ENDS)
    change: Callable[[Arrays, Any], Arrays] = lambda arrays, _: arrays
    """Undoes what the converter did to a layer's tensors, given the configuration; names are the file's still."""
    more: Callable[[GgufHeader], Arrays] = lambda _: {}
    """Tensors of the model, by their whole names, that the file has as settings."""


def common(header: GgufHeader) -> Settings:
    """The sizes and ids that every file of a decoder states."""
    width, heads = int(header.of_model("embedding_length")), header.of_model("attention.head_count")
    found: Settings = {
        "vocab_size": header.tensors["token_embd.weight"][-1],
        "max_position_embeddings": header.of_model("context_length"),
        "hidden_size": width,
        "intermediate_size": header.of_model("feed_forward_length"),
        "num_hidden_layers": layers(header),
        "num_attention_heads": heads,
        "num_key_value_heads": header.of_model("attention.head_count_kv") or heads,
        "head_dim": header.of_model("attention.key_length"),
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "bos_token_id": header.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": header.metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": header.metadata.get("tokenizer.ggml.padding_token_id"),
        "rms_norm_eps": header.of_model("attention.layer_norm_rms_epsilon"),
        "layer_norm_eps": header.of_model("attention.layer_norm_epsilon"),
        "num_experts_per_tok": header.of_model("expert_used_count"),
        "moe_intermediate_size": header.of_model("expert_feed_forward_length"),
    }
    kept = {name: value for name, value in found.items() if value is not None or name.endswith("token_id")}
    return kept | {"rope_parameters": rope(header)}


def rope(header: GgufHeader, **more: Any) -> Settings:
    """Plain rotary positions of the file's base; scaling is read from the file afterwards."""
    return {"rope_type": "default", "rope_theta": float(header.of_model("rope.freq_base") or 10000.0), **more}


def layers(header: GgufHeader) -> int:
    """The layers of the model itself, without those that draft further tokens (MTP)."""
    return int(header.of_model("block_count")) - int(header.of_model("nextn_predict_layers") or 0)


def has(header: GgufHeader, part: str) -> bool:
    """Whether the first layer has a tensor of that name."""
    return f"blk.0.{part}" in header.tensors


def windows(header: GgufHeader, every: int) -> Settings:
    """The window, and the layers that have it: those that the file marks, else all but each ``every``-th one."""
    size, marks = header.of_model("attention.sliding_window"), header.of_model("attention.sliding_window_pattern")
    count = layers(header)
    if not isinstance(size, int) or size <= 0:
        return {"sliding_window": None, "layer_types": ["full_attention"] * count}
    if not isinstance(marks, list):
        marks = [(number + 1) % every != 0 for number in range(count)]
    kinds = ["sliding_attention" if mark else "full_attention" for mark in marks]
    return {"sliding_window": size, "layer_types": kinds}


def in_halves(arrays: Arrays, config: Any) -> Arrays:
    """Queries and keys whose rotary pairs lie in two halves of a head, which llama.cpp's Llamas have interleaved."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    return {
        name: _in_halves(value, heads[name.split(".")[0]]) if name.split(".")[0] in heads else value
        for name, value in arrays.items()
    }


def _in_halves(value: np.ndarray, heads: int) -> np.ndarray:
    pairs = value.reshape(heads, value.shape[0] // heads // 2, 2, *value.shape[1:])
    return pairs.swapaxes(1, 2).reshape(value.shape)
