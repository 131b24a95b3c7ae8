"""LFM2 with experts: short convolutions, and attention where a layer has heads for keys."""

from __future__ import annotations

from typing import Any

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import Arrays, Recipe, Settings


def _settings(header: GgufHeader) -> Settings:
    heads = header.of_model("attention.head_count_kv")
    of_layers = heads if isinstance(heads, list) else []
    return {
        "norm_eps": header.of_model("attention.layer_norm_rms_epsilon"),
        "num_key_value_heads": max(of_layers, default=heads),
        "layer_types": ["full_attention" if count else "conv" for count in of_layers],
        "conv_L_cache": header.of_model("shortconv.l_cache"),
        "conv_bias": any(name.endswith("shortconv.in_proj.bias") for name in header.tensors),
        "num_dense_layers": header.of_model("leading_dense_block_count") or 0,
        "num_experts": header.of_model("expert_count"),
        "use_expert_bias": any(name.endswith("exp_probs_b.bias") for name in header.tensors),
    }


def _of_channels(arrays: Arrays, _: Any) -> Arrays:
    """A kernel of the convolution is that of one channel."""
    return {name: value[:, None] if name == "shortconv.conv.weight" else value for name, value in arrays.items()}


LFM2_MOE = Recipe(
    model_type=lambda _: "lfm2_moe",
    settings=_settings,
    ends={"token_embd": "model.embed_tokens", "token_embd_norm": "model.embedding_norm", "output": "lm_head"},
    names={
        "attn_norm": "operator_norm",
        "ffn_norm": "ffn_norm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.out_proj",
        "attn_q_norm": "self_attn.q_layernorm",
        "attn_k_norm": "self_attn.k_layernorm",
        "shortconv.conv": "conv.conv",
        "shortconv.in_proj": "conv.in_proj",
        "shortconv.out_proj": "conv.out_proj",
        "ffn_gate": "feed_forward.w1",
        "ffn_down": "feed_forward.w2",
        "ffn_up": "feed_forward.w3",
        "ffn_gate_inp": "feed_forward.gate",
        "exp_probs_b.bias": "feed_forward.expert_bias",
        "ffn_gate_exps": "feed_forward.experts.{}.w1",
        "ffn_down_exps": "feed_forward.experts.{}.w2",
        "ffn_up_exps": "feed_forward.experts.{}.w3",
    },
    change=_of_channels,
)
