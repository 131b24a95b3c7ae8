"""Granite, whose multipliers a file states, with experts and without."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import PLAIN, Arrays, Recipe, Settings, has, in_halves

_MULTIPLIERS = {
    "attention_multiplier": "attention.scale",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}
_FUSED = (("exps", "block_sparse_moe.input_linear.weight"), ("shexp", "shared_mlp.input_linear.weight"))


def _multipliers(header: GgufHeader) -> Settings:
    stated = {name: header.of_model(key) for name, key in _MULTIPLIERS.items()}
    return {name: value for name, value in stated.items() if value} | {
        "attention_bias": has(header, "attn_q.bias"),
        "mlp_bias": has(header, "ffn_up.bias"),
    }


def _of_experts(header: GgufHeader) -> Settings:
    return {
        **_multipliers(header),
        "num_local_experts": header.of_model("expert_count"),
        "shared_intermediate_size": header.of_model("expert_shared_feed_forward_length") or 0,
    }


def _fused(arrays: Arrays, config: Any) -> Arrays:
    """Gate and up of the experts in one tensor, and so of the shared one."""
    found = in_halves(arrays, config)
    for ending, name in _FUSED:
        gate, up = f"ffn_gate_{ending}.weight", f"ffn_up_{ending}.weight"
        if gate in found and up in found:
            found[name] = np.concatenate([found.pop(gate), found.pop(up)], axis=-2)
    return found


GRANITE = Recipe(model_type=lambda _: "granite", settings=_multipliers, names=PLAIN, change=in_halves)
GRANITE_MOE = Recipe(
    model_type=lambda header: (
        "granitemoeshared" if header.of_model("expert_shared_feed_forward_length") else "granitemoe"
    ),
    settings=_of_experts,
    names={
        **PLAIN,
        "ffn_gate_inp": "block_sparse_moe.router.layer",
        "ffn_down_exps": "block_sparse_moe.output_linear",
        "ffn_down_shexp": "shared_mlp.output_linear",
        **{name.removesuffix(".weight"): name.removesuffix(".weight") for _, name in _FUSED},
    },
    change=_fused,
)
