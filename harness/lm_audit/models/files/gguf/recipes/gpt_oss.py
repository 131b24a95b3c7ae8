"""gpt-oss, whose experts lie transposed in transformers, gate and up in turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import PLAIN, Arrays, Recipe, Settings, rope, windows

_GATED = "mlp.experts.gate_up_proj"


def _settings(header: GgufHeader) -> Settings:
    count, size = int(header.of_model("block_count")), header.of_model("attention.sliding_window")
    alternating = ["full_attention" if number % 2 else "sliding_attention" for number in range(count)]
    return {
        **windows(header, 2),
        **({"layer_types": alternating} if size else {}),
        "num_local_experts": header.of_model("expert_count"),
        "rope_parameters": rope(header, truncate=False),  # the bounds of YaRN's ramp are not rounded
    }


def _interleaved(arrays: Arrays, _: Any) -> Arrays:
    found = dict(arrays)
    for ending, name in (("weight", _GATED), ("bias", f"{_GATED}_bias")):
        parts = [found.pop(f"ffn_{half}_exps.{ending}", None) for half in ("gate", "up")]
        gate, up = parts
        if gate is not None and up is not None:
            both = np.stack([gate, up], axis=2).reshape(gate.shape[0], 2 * gate.shape[1], *gate.shape[2:])
            found[name] = both.swapaxes(-1, -2) if ending == "weight" else both
    if "ffn_down_exps.weight" in found:
        found["mlp.experts.down_proj"] = found.pop("ffn_down_exps.weight").swapaxes(-1, -2)
    return found


GPT_OSS = Recipe(
    model_type=lambda _: "gpt_oss",
    settings=_settings,
    names={
        **PLAIN,
        "post_attention_norm": "post_attention_layernorm",
        "attn_sinks.weight": "self_attn.sinks",
        "ffn_gate_inp": "mlp.router",
        "ffn_down_exps.bias": "mlp.experts.down_proj_bias",
        **{name: name for name in (_GATED, f"{_GATED}_bias", "mlp.experts.down_proj")},
    },
    change=_interleaved,
)
