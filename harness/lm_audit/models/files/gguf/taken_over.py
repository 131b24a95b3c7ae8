"""What a GGUF file states, or llama.cpp knows of its architecture, and the conversion leaves at some default."""

from __future__ import annotations

from typing import Any

from lm_audit.models.files.gguf.header import GgufHeader

_ONE_WINDOW = ("phi3", "starcoder2", "mistral")
"""Where all layers have one attention window, or none."""

_SIZES = {
    "head_dim": "attention.key_length",
    "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "n_positions": "context_length",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
"""Attribute of a configuration -> the key that states it."""

_SCALED_BY_WIDTH = {"gemma2": 46, "gemma3_text": 62}
"""How many layers the size has (27B) of which attention is scaled by a head's share of the width."""


def take_over(config: Any, header: GgufHeader) -> None:
    """Set in ``config``, as transformers read it, what else the file says of it."""
    compressed = header.of_model("attention.kv_lora_rank") is not None  # heads' sizes are those of what is stored
    for name, key in _SIZES.items():
        stated = None if compressed and name == "head_dim" else header.of_model(key)
        if stated and hasattr(config, name) and not isinstance(stated, bool) and header.of_model(f"{key}_swa") is None:
            setattr(config, name, stated)
    _set_window(config, header)
    _set_scale(config, header)


def _set_window(config: Any, header: GgufHeader) -> None:
    """One attention window for all layers, in architectures that have it so (Phi-3).

    llama.cpp writes the number of the model's config, and gives the file of a model without a window none, or 0.
    """
    stated, pattern = (header.of_model(f"attention.sliding_window{ending}") for ending in ("", "_pattern"))
    if config.model_type in _ONE_WINDOW and pattern is None:
        config.sliding_window = stated if isinstance(stated, int) and stated > 0 else None


def _set_scale(config: Any, header: GgufHeader) -> None:
    """The scale of Gemma's attention, which no file states: llama.cpp knows it by the number of layers."""
    layers = _SCALED_BY_WIDTH.get(config.model_type)
    width, heads = header.of_model("embedding_length"), header.of_model("attention.head_count")
    if layers is None or not isinstance(width, int) or not isinstance(heads, int) or not heads:
        return
    head = header.of_model("attention.key_length") or config.head_dim
    config.query_pre_attn_scalar = width // heads if header.of_model("block_count") == layers else head
