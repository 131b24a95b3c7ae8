"""Lengths up to which a model treats every position alike, read from its configuration."""

from __future__ import annotations

from typing import Any

_NO_LENGTHS = {"max_window_layers"}  # a number of layers


def context_window(config: Any) -> int | None:
    """The largest number of input tokens, or None where the configuration sets none."""
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def attention_reach(config: Any) -> int | None:
    """The shortest attention window or chunk: longer texts must keep their own positions in the batch."""
    lengths = [
        length
        for name, value in config.get_text_config().to_dict().items()
        if ("window" in name or "attention_chunk" in name) and name not in _NO_LENGTHS
        for length in (value if isinstance(value, list | tuple) else [value])
        if isinstance(length, int) and not isinstance(length, bool) and length > 0
    ]
    return min(lengths, default=None)


def uniform_rotation(config: Any) -> int | None:
    """Length beyond which rotary frequencies depend on the longest text of the batch (dynamic NTK, LongRoPE)."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    lengths = [
        kind.get("original_max_position_embeddings")
        or getattr(text, "original_max_position_embeddings", None)
        or context_window(config)
        for kind in kinds
        if kind.get("rope_type", kind.get("type")) in ("dynamic", "longrope")
    ]
    return min((n for n in lengths if n), default=None)
