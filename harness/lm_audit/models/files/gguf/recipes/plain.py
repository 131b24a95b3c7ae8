"""Dense decoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import (
    HEAD_NORMS,
    PLAIN,
    Arrays,
    Recipe,
    Settings,
    has,
    in_halves,
    layers,
    rope,
    windows,
)

_AFTER_NORMS = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
_XIELU = ("alpha_n", "alpha_p", "beta", "eps")


def _of(kind: str) -> Any:
    return lambda _: kind


def _nothing(_: GgufHeader) -> Settings:
    return {}


def _biases(header: GgufHeader) -> Settings:
    return {"attention_bias": has(header, "attn_q.bias")}


def _share(header: GgufHeader) -> Settings:
    """Rotary positions for a part of each head."""
    width = header.of_model("attention.key_length") or (
        header.of_model("embedding_length") // header.of_model("attention.head_count")
    )
    turned = header.of_model("rope.dimension_count") or width
    return {"head_dim": width, "rope_parameters": rope(header, partial_rotary_factor=turned / width)}


def _of_olmo2(header: GgufHeader) -> Settings:
    if not header.of_model("attention.sliding_window"):
        return {}
    full = rope(header)
    near = {**full, "rope_theta": float(header.of_model("rope.freq_base_swa") or full["rope_theta"])}
    return {**windows(header, 4), "rope_parameters": {"full_attention": full, "sliding_attention": near}}


def _of_cohere2(header: GgufHeader) -> Settings:
    return {**windows(header, 4), "logit_scale": header.of_model("logit_scale")}


def _xielu(header: GgufHeader) -> Arrays:
    """The numbers of Apertus' activation, of which the file has one list each for all layers."""
    found = {}
    for name in _XIELU:
        values = header.metadata.get(f"xielu.{name}")
        for number, value in enumerate(values if isinstance(values, list) else ()):
            found[f"model.layers.{number}.mlp.act_fn.{name}"] = np.array(
                [value] if name.startswith("alpha") else value, np.float32
            )
    return found


def _less_one(arrays: Arrays, _: Any) -> Arrays:
    return {name: value - 1 if name.endswith("norm.weight") else value for name, value in arrays.items()}


OLMO = Recipe(
    model_type=_of("olmo"),
    settings=lambda header: {"clip_qkv": header.of_model("attention.clamp_kqv")},
    names=PLAIN,
    change=in_halves,
)
OLMO2 = Recipe(
    model_type=lambda header: "olmo3" if header.of_model("attention.sliding_window") else "olmo2",
    settings=_of_olmo2,
    names={**PLAIN, **HEAD_NORMS, **_AFTER_NORMS},
)
EXAONE4 = Recipe(
    model_type=_of("exaone4"),
    settings=lambda header: {**windows(header, 4), "sliding_window_pattern": None},
    names={**PLAIN, **HEAD_NORMS, **_AFTER_NORMS},
)
SMOLLM3 = Recipe(
    model_type=_of("smollm3"),
    settings=lambda header: {"no_rope_layers": [int((i + 1) % 4 != 0) for i in range(layers(header))]},
    names=PLAIN,
    change=in_halves,
)
SEED_OSS = Recipe(
    model_type=_of("seed_oss"),
    settings=lambda header: {**_biases(header), "attention_out_bias": has(header, "attn_output.bias")},
    names={**PLAIN, "post_attention_norm": "post_attention_layernorm"},
)
ARCEE = Recipe(model_type=_of("arcee"), settings=_nothing, names=PLAIN, change=in_halves)
ERNIE = Recipe(
    model_type=_of("ernie4_5"), settings=lambda header: {"use_bias": has(header, "ffn_up.bias")}, names=PLAIN
)
HUNYUAN = Recipe(
    model_type=_of("hunyuan_v1_dense"),
    settings=_biases,
    names={**PLAIN, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
)
GLM4 = Recipe(
    model_type=_of("glm4"),
    settings=lambda header: {**_biases(header), **_share(header)},
    names={
        **PLAIN,
        "ffn_up": "mlp.gate_up_proj",
        "post_attention_norm": "post_self_attn_layernorm",
        "post_ffw_norm": "post_mlp_layernorm",
    },
)
COHERE = Recipe(
    model_type=_of("cohere"),
    settings=lambda header: {
        "logit_scale": header.of_model("logit_scale"),
        "use_qk_norm": has(header, "attn_q_norm.weight"),
    },
    names={**PLAIN, **HEAD_NORMS},
)
COHERE2 = Recipe(model_type=_of("cohere2"), settings=_of_cohere2, names=PLAIN)
GEMMA = Recipe(
    model_type=_of("gemma"),
    settings=lambda header: {"hidden_activation": "gelu_pytorch_tanh"},
    names=PLAIN,
    change=_less_one,
)
APERTUS = Recipe(
    model_type=_of("apertus"),
    settings=_nothing,
    names={**PLAIN, **HEAD_NORMS, "attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"},
    more=_xielu,
)
