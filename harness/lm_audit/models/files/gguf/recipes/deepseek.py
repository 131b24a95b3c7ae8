"""DeepSeek V2, V3 and R1, and what has their attention (Kimi, Moonlight): compressed keys and values (MLA)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.mixture import routed
from lm_audit.models.files.gguf.recipes.recipe import EXPERTS, PLAIN, Arrays, Recipe, Settings, rope

_SIGMOID = 2


def _is_third(header: GgufHeader) -> bool:
    """Whether experts are chosen as in V3."""
    return bool(header.of_model("expert_gating_func") == _SIGMOID)


def _method(header: GgufHeader) -> str:
    """How V2 chooses experts: where they stand in groups, within the best groups."""
    return "group_limited_greedy" if (header.of_model("expert_group_count") or 1) > 1 else "greedy"


def _settings(header: GgufHeader) -> Settings:
    turned = int(header.of_model("rope.dimension_count"))
    compressed = int(header.of_model("attention.kv_lora_rank"))
    # Files before MLA was absorbed state the sizes of heads under the plain keys.
    key = header.of_model("attention.key_length_mla") or header.of_model("attention.key_length")
    value = header.of_model("attention.value_length_mla") or header.of_model("attention.value_length")
    heads = header.of_model("attention.head_count")
    return {
        **routed(header),
        **({} if _is_third(header) else {"topk_method": _method(header)}),
        "num_key_value_heads": heads,
        "q_lora_rank": header.of_model("attention.q_lora_rank"),
        "kv_lora_rank": compressed,
        "qk_rope_head_dim": turned,
        "qk_nope_head_dim": key - turned,
        "head_dim": turned,
        "v_head_dim": value,
        "rope_parameters": rope(header),
    }


def _joined(arrays: Arrays, config: Any) -> Arrays:
    """Keys' and values' decompression in one matrix, which newer files have apart, that of keys transposed."""
    found = dict(arrays)
    keys, values = found.pop("attn_k_b.weight", None), found.pop("attn_v_b.weight", None)
    if keys is not None and values is not None:
        both = np.concatenate([keys.swapaxes(1, 2), values], axis=1)
        found["attn_kv_b.weight"] = both.reshape(-1, both.shape[-1])
    return found


DEEPSEEK = Recipe(
    model_type=lambda header: "deepseek_v3" if _is_third(header) else "deepseek_v2",
    settings=_settings,
    names={
        **PLAIN,
        **EXPERTS,
        "attn_q_a": "self_attn.q_a_proj",
        "attn_q_a_norm": "self_attn.q_a_layernorm",
        "attn_q_b": "self_attn.q_b_proj",
        "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
        "attn_kv_a_norm": "self_attn.kv_a_layernorm",
        "attn_kv_b": "self_attn.kv_b_proj",
    },
    change=_joined,
)
