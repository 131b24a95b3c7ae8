"""Decoders with experts, but for DeepSeek's, Granite's and gpt-oss."""

from __future__ import annotations

from typing import Any

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import (
    EXPERTS,
    HEAD_NORMS,
    PLAIN,
    Arrays,
    Recipe,
    Settings,
    has,
    in_halves,
    rope,
)


def routed(header: GgufHeader) -> Settings:
    """DeepSeek's settings of experts, which GLM and dots share."""
    return {
        "n_routed_experts": header.of_model("expert_count"),
        "n_shared_experts": header.of_model("expert_shared_count") or 0,
        "first_k_dense_replace": header.of_model("leading_dense_block_count") or 0,
        "routed_scaling_factor": header.of_model("expert_weights_scale") or 1.0,
        "norm_topk_prob": bool(header.of_model("expert_weights_norm")),
        "n_group": header.of_model("expert_group_count") or 1,
        "topk_group": header.of_model("expert_group_used_count") or 1,
    }


def _of_glm(header: GgufHeader) -> Settings:
    width = header.of_model("attention.key_length")
    turned = header.of_model("rope.dimension_count")
    return {
        **routed(header),
        "attention_bias": has(header, "attn_q.bias"),
        "use_qk_norm": has(header, "attn_q_norm.weight"),
        "rope_parameters": rope(header, partial_rotary_factor=turned / width),
    }


def _of_ernie(header: GgufHeader) -> Settings:
    return {
        "use_bias": has(header, "attn_q.bias"),
        "moe_num_experts": header.of_model("expert_count"),
        "moe_k": header.of_model("expert_used_count"),
        "moe_num_shared_experts": header.of_model("expert_shared_count") or 0,
        "moe_layer_interval": header.of_model("interleave_moe_layer_step") or 1,
        "moe_layer_start_index": header.of_model("leading_dense_block_count") or 0,
    }


def _one_row(arrays: Arrays, _: Any) -> Arrays:
    """Ernie has its correction of the scores as one row."""
    return {name: value.reshape(1, -1) if name == "exp_probs_b.bias" else value for name, value in arrays.items()}


def _gate_in_one_row(arrays: Arrays, _: Any) -> Arrays:
    """The shared expert's gate, which files have as a row or as a list."""
    return {
        name: value.reshape(1, -1) if name == "ffn_gate_inp_shexp.weight" else value for name, value in arrays.items()
    }


MIXTRAL = Recipe(
    model_type=lambda _: "mixtral",
    settings=lambda header: {"num_local_experts": header.of_model("expert_count"), "sliding_window": None},
    names={
        **PLAIN,
        "ffn_gate_inp": "block_sparse_moe.gate",
        "ffn_gate_exps": "block_sparse_moe.experts.{}.w1",
        "ffn_up_exps": "block_sparse_moe.experts.{}.w3",
        "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
    },
    change=in_halves,
)
OLMO_MOE = Recipe(
    model_type=lambda _: "olmoe",
    settings=lambda header: {"num_experts": header.of_model("expert_count"), "norm_topk_prob": False},
    names={**PLAIN, **HEAD_NORMS, **EXPERTS},
)
GLM_MOE = Recipe(model_type=lambda _: "glm4_moe", settings=_of_glm, names={
    **PLAIN, **HEAD_NORMS, **EXPERTS, "post_attention_norm": "post_attention_layernorm",
})  # fmt: skip
DOTS = Recipe(model_type=lambda _: "dots1", settings=routed, names={**PLAIN, **HEAD_NORMS, **EXPERTS})
ERNIE_MOE = Recipe(
    model_type=lambda _: "ernie4_5_moe",
    settings=_of_ernie,
    names={**PLAIN, **EXPERTS, "exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias"},
    change=_one_row,
)
HUNYUAN_MOE = Recipe(
    model_type=lambda _: "hunyuan_v1_moe",
    settings=lambda header: {
        "num_experts": header.of_model("expert_count"),
        "moe_topk": header.of_model("expert_used_count"),
        "num_shared_expert": header.of_model("expert_shared_count"),
        "attention_bias": has(header, "attn_q.bias"),
    },
    names={
        **PLAIN,
        **EXPERTS,
        "attn_q_norm": "self_attn.query_layernorm",
        "attn_k_norm": "self_attn.key_layernorm",
        "ffn_gate_inp": "mlp.gate.wg",
        "ffn_gate_shexp": "mlp.shared_mlp.gate_proj",
        "ffn_up_shexp": "mlp.shared_mlp.up_proj",
        "ffn_down_shexp": "mlp.shared_mlp.down_proj",
    },
)
QWEN2_MOE = Recipe(
    model_type=lambda _: "qwen2_moe",
    settings=lambda header: {
        "num_experts": header.of_model("expert_count"),
        "shared_expert_intermediate_size": header.of_model("expert_shared_feed_forward_length"),
        "norm_topk_prob": False,
    },
    names={
        **PLAIN,
        **EXPERTS,
        "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
        "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
        "ffn_up_shexp": "mlp.shared_expert.up_proj",
        "ffn_down_shexp": "mlp.shared_expert.down_proj",
    },
    change=_gate_in_one_row,
)
