"""GGUF architectures that transformers does not convert are the models that they were made of.

Keys, values and changes of tensors are those that llama.cpp's converter writes, tensors' names those of its tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from tests.models.files.exported_gguf import SHAPE, STATED, Split, export_saved, random_model

IDS = torch.arange(3, 60)[None]
WIDE_HEADS = {"attention.key_length": 16, "attention.value_length": 16}
NORM = {"attention.layer_norm_epsilon": 1e-5}
USED = {"expert_count": 4, "expert_used_count": 2}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
STATED_YARN = {
    **{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16},
}
WINDOW = {"sliding_window": 8, "num_hidden_layers": 4}
STATED_WINDOW = {"attention.sliding_window": 8, "block_count": 4}
MARKS = {"attention.sliding_window_pattern": [True, True, True, False]}
MULTIPLIERS = {
    **{"attention_multiplier": 0.3, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0},
}
STATED_MULTIPLIERS = {"attention.scale": 0.3, "embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 8.0}
ROUTED = {
    **{"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "first_k_dense_replace": 1},
    **{"n_shared_experts": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5},
}
STATED_ROUTED = {
    **{**USED, "expert_feed_forward_length": 24, "leading_dense_block_count": 1, "expert_shared_count": 1},
    **{"expert_group_count": 1, "expert_group_used_count": 1, "expert_weights_norm": True},
    **{"expert_weights_scale": 2.5, "expert_gating_func": 2},
}
MLA = {
    **{"num_key_value_heads": 4, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12},
}
STATED_MLA = {
    **{"attention.head_count_kv": 1, "attention.kv_lora_rank": 16, "rope.dimension_count": 8},
    **{"attention.key_length": 24, "attention.value_length": 16},
    **{"attention.key_length_mla": 16, "attention.value_length_mla": 12},
}
SECOND = {"routed_scaling_factor": 1.0, "norm_topk_prob": False, "topk_method": "greedy", "q_lora_rank": None}
ERNIE = {
    **{"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 24, "moe_num_shared_experts": 1},
    **{"moe_layer_start_index": 1, "head_dim": 16},
}


def interleaved(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """llama.cpp's Llamas have the halves of each head's rotary dimensions in turns."""
    heads = next((count for part, count in (("q_proj", 4), ("k_proj", 2)) if part in name), None)
    if heads is None:
        return {name: value}
    halves = value.reshape(heads, 2, value.shape[0] // heads // 2, *value.shape[1:])
    return {name: halves.swapaxes(1, 2).reshape(value.shape)}


def of_granite(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if "input_linear" not in name:
        return interleaved(name, value)
    kind = "shexp" if "shared" in name else "exps"
    layer = name.split(".")[2]
    gate, up = np.split(value, 2, axis=-2)
    return {f"blk.{layer}.ffn_gate_{kind}.weight": gate, f"blk.{layer}.ffn_up_{kind}.weight": up}


def of_gpt_oss(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if "experts" not in name:
        return {name: value}
    layer, ending = name.split(".")[2], "bias" if name.endswith("_bias") else "weight"
    turned = value if ending == "bias" else value.swapaxes(-1, -2)
    if "down_proj" in name:
        return {f"blk.{layer}.ffn_down_exps.{ending}": turned}
    gate, up = turned[:, ::2], turned[:, 1::2]
    return {f"blk.{layer}.ffn_gate_exps.{ending}": gate, f"blk.{layer}.ffn_up_exps.{ending}": up}


def of_mla(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if "kv_b_proj" not in name:
        return {name: value}
    layer = name.split(".")[2]
    keys, values = np.split(value.reshape(4, 20, 16), [8], axis=1)
    return {f"blk.{layer}.attn_k_b.weight": keys.swapaxes(1, 2), f"blk.{layer}.attn_v_b.weight": values}


def plus_one(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    return {name: value + 1 if value.ndim == 1 else value}


def of_lfm2(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if name.endswith("expert_bias"):
        return {f"blk.{name.split('.')[2]}.exp_probs_b.bias": value}
    if "experts" in name:
        part = {"w1": "gate", "w2": "down", "w3": "up"}[name.split(".")[-2]]
        return {f"blk.{name.split('.')[2]}.ffn_{part}_exps.weight": value}
    return {name: value[:, 0] if name.endswith("conv.conv.weight") else value}


def of_apertus(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    return {} if "act_fn" in name else {name: value}


MODELS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], Split | None]] = {
    "mixtral": (
        *("MixtralConfig", "llama", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
        *({**USED, "rope.dimension_count": 8}, interleaved),
    ),
    "olmo": ("OlmoConfig", "olmo", {"clip_qkv": 0.7}, {**NORM, "attention.clamp_kqv": 0.7}, interleaved),
    "olmo2": ("Olmo2Config", "olmo2", {}, {}, None),
    "olmo3": (
        "Olmo3Config",
        "olmo2",
        {
            **WINDOW,
            "rope_parameters": {
                "full_attention": {**YARN, "attention_factor": 1.2},
                "sliding_attention": PLAIN_ROPE,
            },
        },
        {**STATED_WINDOW, **MARKS, **STATED_YARN, "rope.scaling.yarn_attn_factor": 1.2},
        None,
    ),
    "olmoe": ("OlmoeConfig", "olmoe", {"num_experts": 4, "num_experts_per_tok": 2}, USED, None),
    "lfm2 with experts": (
        "Lfm2MoeConfig",
        "lfm2moe",
        {
            **{"layer_types": ["conv", "full_attention"], "num_dense_layers": 1, "num_experts": 4},
            **{"num_experts_per_tok": 2, "moe_intermediate_size": 24},
        },
        {
            **{**USED, "attention.head_count_kv": [0, 2], "expert_feed_forward_length": 24, "shortconv.l_cache": 3},
            **{"leading_dense_block_count": 1, "expert_gating_func": 2},
        },
        of_lfm2,
    ),
    "qwen2 moe": (
        "Qwen2MoeConfig",
        "qwen2moe",
        {
            **{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
            "shared_expert_intermediate_size": 40,
        },
        {**USED, "expert_feed_forward_length": 24, "expert_shared_feed_forward_length": 40},
        None,
    ),
    "exaone4": ("Exaone4Config", "exaone4", WINDOW, {**STATED_WINDOW, **MARKS}, None),
    "exaone4 without windows": (
        *("Exaone4Config", "exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 2}),
        *({}, None),
    ),
    "smollm3": (
        *("SmolLM3Config", "smollm3", {"num_hidden_layers": 4}),
        *({"block_count": 4, "rope.dimension_count": 8}, interleaved),
    ),
    "seed-oss": ("SeedOssConfig", "seed_oss", {"head_dim": 16}, WIDE_HEADS, None),
    "arcee": ("ArceeConfig", "arcee", {}, {"rope.dimension_count": 8}, interleaved),
    "ernie": ("Ernie4_5Config", "ernie4_5", {"head_dim": 16}, WIDE_HEADS, None),
    "hunyuan": ("HunYuanDenseV1Config", "hunyuan-dense", {"head_dim": 16}, WIDE_HEADS, None),
    "glm4": (
        *("Glm4Config", "glm4", {"head_dim": 16, "attention_bias": True}),
        *({**WIDE_HEADS, "rope.dimension_count": 8}, None),
    ),
    "glm4 with yarn": (
        *("Glm4Config", "glm4", {"head_dim": 16, "rope_parameters": {**YARN, "partial_rotary_factor": 0.5}}),
        *({**WIDE_HEADS, "rope.dimension_count": 8, **STATED_YARN}, None),
    ),
    "command-r": (
        *("CohereConfig", "command-r", {"logit_scale": 0.25, "use_qk_norm": True}),
        *({**NORM, "logit_scale": 0.25, "rope.scaling.type": "none"}, None),
    ),
    "cohere2": (
        *("Cohere2Config", "cohere2", {**WINDOW, "logit_scale": 0.25}),
        *({**NORM, **STATED_WINDOW, "logit_scale": 0.25, "rope.dimension_count": 8, "vocab_size": 320}, None),
    ),
    "gemma": ("GemmaConfig", "gemma", {"head_dim": 16, "tie_word_embeddings": True}, WIDE_HEADS, plus_one),
    "apertus": ("ApertusConfig", "apertus", {"rope_parameters": PLAIN_ROPE}, {"rope.dimension_count": 8}, of_apertus),
    "granite": ("GraniteConfig", "granite", MULTIPLIERS, STATED_MULTIPLIERS, interleaved),
    "granite with experts": (
        *("GraniteMoeConfig", "granitemoe", {**MULTIPLIERS, "num_local_experts": 4, "num_experts_per_tok": 2}),
        *({**STATED_MULTIPLIERS, **USED}, of_granite),
    ),
    "granite with a shared expert": (
        "GraniteMoeSharedConfig",
        "granitemoe",
        {**MULTIPLIERS, "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 24},
        {**STATED_MULTIPLIERS, **USED, "expert_shared_feed_forward_length": 24},
        of_granite,
    ),
    "gpt-oss": (
        "GptOssConfig",
        "gpt-oss",
        {
            **{"head_dim": 16, "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
            "rope_parameters": {**YARN, "beta_fast": 3.0, "beta_slow": 1.0, "truncate": False},
        },
        {
            **{**WIDE_HEADS, **USED, **STATED_YARN, "attention.sliding_window": 8, "expert_feed_forward_length": 48},
            **{"rope.scaling.yarn_beta_fast": 3.0, "rope.scaling.yarn_beta_slow": 1.0},
        },
        of_gpt_oss,
    ),
    "glm4 with experts": (
        "Glm4MoeConfig",
        "glm4moe",
        {**ROUTED, "head_dim": 16, "attention_bias": True, "use_qk_norm": True},
        {**STATED_ROUTED, **WIDE_HEADS, "rope.dimension_count": 8},
        None,
    ),
    "dots": ("Dots1Config", "dots1", {**ROUTED, "head_dim": 16}, {**STATED_ROUTED, **WIDE_HEADS}, None),
    "ernie with experts": (
        "Ernie4_5_MoeConfig",
        "ernie4_5-moe",
        ERNIE,
        {
            **{**USED, **WIDE_HEADS, "expert_feed_forward_length": 24, "expert_shared_count": 1},
            **{"interleave_moe_layer_step": 1, "leading_dense_block_count": 1},
        },
        None,
    ),
    "hunyuan with experts": (
        "HunYuanMoEV1Config",
        "hunyuan-moe",
        {"head_dim": 16, "num_experts": 4, "moe_topk": 2, "num_shared_expert": 1},
        {
            **{**USED, **WIDE_HEADS, "expert_shared_feed_forward_length": 48, "expert_feed_forward_length": 48},
            "expert_shared_count": 1,
        },
        None,
    ),
    "deepseek 3": (
        "DeepseekV3Config",
        "deepseek2",
        {**ROUTED, **MLA, "q_lora_rank": 16},
        {
            **STATED_ROUTED,
            **STATED_MLA,
            "attention.q_lora_rank": 16,
        },
        of_mla,
    ),
    "deepseek 3 with yarn": (
        "DeepseekV3Config",
        "deepseek2",
        {
            **{**ROUTED, **MLA, "q_lora_rank": 16, "n_group": 2},
            "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
        },
        {
            **{**STATED_ROUTED, **STATED_MLA, **STATED_YARN, "attention.q_lora_rank": 16, "expert_group_count": 2},
            "rope.scaling.yarn_log_multiplier": 0.1,
        },
        of_mla,
    ),
    "deepseek 2 lite, keys and values in one": (
        "DeepseekV2Config",
        "deepseek2",
        {**ROUTED, **MLA, **SECOND},
        {
            **{**STATED_ROUTED, **STATED_MLA, "expert_weights_scale": 1.0, "expert_weights_norm": False},
            **{"expert_gating_func": 1, "attention.head_count_kv": 4},
            **{"attention.key_length": 16, "attention.value_length": 12},
        },
        None,
    ),
}
MODELS["deepseek 2, experts in groups"] = (
    "DeepseekV2Config",
    "deepseek2",
    {**ROUTED, **MLA, **SECOND, "topk_method": "group_limited_greedy", "n_group": 2},
    MODELS["deepseek 2 lite, keys and values in one"][3] | {"expert_group_count": 2},
    None,
)
OLDER = ("attention.key_length_mla", "attention.value_length_mla")


def made(name: str, path: Path) -> tuple[Any, Path]:
    import transformers

    config_class, architecture, settings, stated, split = MODELS[name]
    module = random_model(getattr(transformers, config_class)(**{**SHAPE, **settings}))
    base = {key: value for key, value in STATED.items() if not ("rms" in key and NORM.keys() <= stated.keys())}
    if architecture == "apertus":
        acts = [layer.mlp.act_fn for layer in module.model.layers]
        stated = stated | {f"/xielu.{k}": [float(getattr(act, k)) for act in acts] for k in XIELU}
    keys = {**base, **stated}
    rope = module.config.rope_parameters
    keys["rope.freq_base"] = float(rope.get("full_attention", rope)["rope_theta"])
    for key in ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"):
        if key in keys:
            keys[key] = next((getattr(module.config, eps) for eps in EPSILONS if hasattr(module.config, eps)), 1e-5)
    if name.endswith(("in one", "in groups")):
        keys = {key: value for key, value in keys.items() if key not in OLDER}
    return module, export_saved(path, module, architecture, keys, split)


EPSILONS = ("rms_norm_eps", "norm_eps", "layer_norm_eps")
XIELU = ("alpha_n", "alpha_p", "beta", "eps")


QUICK = ("gpt-oss", "mixtral", "olmo3", "deepseek 3 with yarn", "deepseek 2, experts in groups")
"""One of each way in which a file's tensors differ; ``-m slow`` has all."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in MODELS])
def test_it_is_the_model_that_it_was_made_of(name: str, tmp_path: Path, own_cache: Path) -> None:
    module, path = made(name, tmp_path / "made.gguf")
    loaded = load_model(path, device="cpu")
    torch.testing.assert_close(loaded.module(IDS).logits, module(IDS).logits, rtol=1e-5, atol=1e-5)


def test_as_many_experts_as_stand_in_groups_need_the_groups(tmp_path: Path, own_cache: Path) -> None:
    from transformers import DeepseekV3Config

    settings: dict[str, Any] = {**SHAPE, **ROUTED, **MLA, "q_lora_rank": 16, "n_routed_experts": 160}
    stated = {**STATED, **STATED_ROUTED, **STATED_MLA, "attention.q_lora_rank": 16, "expert_count": 160}
    without = {key: value for key, value in stated.items() if key != "expert_group_count"}
    path = export_saved(
        tmp_path / "made.gguf", random_model(DeepseekV3Config(**settings)), "deepseek2", without, of_mla
    )
    with pytest.raises(ModelError, match=r"made\.gguf does not state deepseek2\.expert_group_count$"):
        load_model(path, device="cpu")


def test_a_tensor_of_no_place_and_one_that_lacks(tmp_path: Path, own_cache: Path) -> None:
    from transformers import Olmo2Config

    module = random_model(Olmo2Config(**SHAPE))

    def odd(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
        return {"blk.1.attn_mystery.weight": value} if "layers.1.self_attn.q_proj" in name else {name: value}

    def short(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
        return {} if "layers.1.self_attn.q_proj" in name else {name: value}

    for split, words in ((odd, r"cannot keep: blk\.1\.attn_mystery\.weight"), (short, r"missing: .*layers\.1.*q_proj")):
        with pytest.raises(ModelError, match=words):
            load_model(export_saved(tmp_path / f"{split.__name__}.gguf", module, "olmo2", STATED, split), device="cpu")


@pytest.mark.parametrize("key", ["attention.sliding_window", "logit_scale", "attention.clamp_kqv", "expert_count"])
def test_a_setting_that_the_architecture_has_not(key: str, tmp_path: Path, own_cache: Path) -> None:
    from transformers import ArceeConfig

    module = random_model(ArceeConfig(**SHAPE))
    path = export_saved(tmp_path / "made.gguf", module, "arcee", {**STATED, key: 3}, interleaved)
    if key == "expert_count":
        load_model(path, device="cpu")  # a size: no tensor has it
        return
    with pytest.raises(ModelError, match=f"cannot keep: arcee.{key} = 3"):
        load_model(path, device="cpu")
