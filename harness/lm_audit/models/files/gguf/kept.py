"""Whether a converted configuration keeps the numbers that a GGUF file states: conversions pass over some of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from lm_audit.errors import ModelError
from lm_audit.models.context import rope_kinds
from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.json_file import listed

_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
_FIELDS: dict[str, tuple[str, ...]] = {
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.layer_norm_rms_epsilon": _EPSILONS,
    "attention.layer_norm_epsilon": _EPSILONS,
    "expert_used_count": ("num_experts_per_tok", "moe_k", "moe_topk"),
    "use_parallel_residual": ("use_parallel_residual",),
}
"""Key -> where a configuration may have its value; the shapes of tensors tell the other sizes."""

_SHAPES = frozenset(
    [
        *("vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length", "expert_count"),
        *("expert_feed_forward_length", "expert_shared_feed_forward_length", "attention.head_count_kv"),
        *("attention.key_length", "attention.value_length", "attention.q_lora_rank", "attention.kv_lora_rank"),
        *("ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank", "ssm.group_count"),
        *("shortconv.l_cache", "attention.key_length_swa", "attention.value_length_swa"),
        *("attention.key_length_mla", "attention.value_length_mla"),
    ]
)
"""Sizes: a model made with others would not take the tensors."""

_READ = frozenset(
    [
        *("rope.freq_base", "rope.dimension_count", "rope.scale_linear", "rope.scaling.type", "rope.scaling.factor"),
        *("rope.scaling.attn_factor", "rope.scaling.original_context_length", "rope.scaling.yarn_attn_factor"),
        *("rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"),
    ]
)
"""What the rotary settings are made of, or refused for, elsewhere."""

_SAY_NOTHING = frozenset(
    [
        *("tensor_data_layout", "pooling_type", "rope.scaling.finetuned", "rope.dimension_sections"),
        *("nextn_predict_layers", "embedding_length_out"),
    ]
)
"""What has no part in the logits of a text: how vectors are pooled, axes of pictures, a head for drafts."""

_NEUTRAL: dict[str, tuple[float, ...]] = {
    "logit_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "embedding_scale": (0.0, 1.0),
    "attention.scale": (0.0,),
    "attention.output_scale": (0.0, 1.0),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.sliding_window": (0.0,),
    "attention.temperature_length": (0.0,),
    "attention.temperature_scale": (0.0,),
    "attention.shared_kv_layers": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "router_logit_softcapping": (0.0,),
    "expert_weights_scale": (0.0, 1.0),
    "expert_group_count": (0.0, 1.0),
    "expert_group_used_count": (0.0, 1.0),
    "expert_shared_count": (0.0,),
    "leading_dense_block_count": (0.0,),
    "interleave_moe_layer_step": (0.0, 1.0),
    "moe_every_n_layers": (0.0, 1.0),
    "attention.causal": (1.0,),
    "rope.scaling.alpha": (0.0,),
    "rope.scaling.yarn_ext_factor": (1.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "ssm.dt_b_c_rms": (0.0,),
    "swin_norm": (0.0,),
}
"""Key -> the values at which it changes nothing."""

_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "logit_scale": ("logit_scale", "logits_scaling"),
    "residual_scale": ("residual_multiplier",),
    "embedding_scale": ("embedding_multiplier",),
    "attention.scale": ("attention_multiplier",),
    "attention.sliding_window": ("sliding_window",),
    "attention.clamp_kqv": ("clip_qkv",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "router_logit_softcapping": ("router_logit_softcapping",),
    "expert_weights_scale": ("routed_scaling_factor",),
    "expert_weights_norm": ("norm_topk_prob",),
    "expert_shared_count": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "expert_group_count": ("n_group",),
    "expert_group_used_count": ("topk_group",),
    "leading_dense_block_count": ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"),
    "interleave_moe_layer_step": ("moe_layer_interval",),
}
"""Key -> where a configuration may have its value, if it has that setting."""

_GATES = {1: "softmax", 2: "sigmoid"}
"""``expert_gating_func`` as ``scoring_func``; most architectures have the first and no such setting."""

_BY_SIGMOID = ("deepseek_v3", "dots1", "glm4_moe", "lfm2_moe")
"""Architectures that have the second one and no such setting."""


def check_every_key(config: Any, header: GgufHeader, path: Path) -> None:
    """``ModelError`` naming each setting of the model in the file that ``config``, as it was converted, does not hold.

    What is not known here counts as one of these, unless its value changes nothing.
    """
    prefix = f"{header.architecture}."
    lost = [
        f"{key} = {value!r:.20}"
        for key, value in header.metadata.items()
        if key.startswith(prefix) and not _is_held(key.removeprefix(prefix), value, config, header)
    ]
    if lost:
        raise ModelError(f"{path} states what the conversion cannot keep: {listed(sorted(lost))}")


def _is_held(key: str, value: Any, config: Any, header: GgufHeader) -> bool:
    if key in _SHAPES or key in _READ or key in _FIELDS or key in _SAY_NOTHING:
        return True
    if _is_number(value) and any(_same(value, neutral) for neutral in _NEUTRAL.get(key, ())):
        return True
    if key == "expert_gating_func":
        # The conversion of MiniMax M2 hands on the number; its class gates so whatever the configuration says.
        fixed = "sigmoid" if getattr(config, "model_type", None) in _BY_SIGMOID else "softmax"
        return getattr(config, "scoring_func", fixed) in (_GATES.get(value), value)
    if key == "attention.sliding_window" and _is_number(value) and value >= int(header.of_model("context_length")):
        return True
    if key in ("attention.sliding_window_pattern", "full_attention_interval"):
        return _is_pattern(value, getattr(config, "layer_types", None))
    if key == "rope.scaling.yarn_log_multiplier":  # a tenth of it, as DeepSeek's files have it
        return any(
            _same(10 * value, one) for rope in rope_kinds(config) if _is_number(one := rope.get("mscale_all_dim"))
        )
    if key in ("rope.freq_base_swa", "rope.dimension_count_swa"):
        stated = [rope.get("rope_theta") for rope in rope_kinds(config)] if "base" in key else _rotary_widths(config)
        return any(_is_number(one) and _same(value, one) for one in stated)
    held = [getattr(config, name, None) for name in _ATTRIBUTES.get(key, ())]
    return _is_number(value) and any(_is_number(one) and _same(value, one) for one in held)


def _is_pattern(value: Any, layers: object) -> bool:
    """Whether the layers of a configuration see all but in those places where a file says so.

    A number means that every n-th layer sees all; a list has a mark for each layer that does not.
    """
    if not isinstance(layers, list):
        return False
    windowed = [kind != "full_attention" for kind in layers]
    if isinstance(value, list):
        return [bool(mark) for mark in value] == windowed
    return _is_number(value) and value > 0 and [(i + 1) % value != 0 for i in range(len(layers))] == windowed


def check_kept(config: Any, header: GgufHeader, path: Path) -> None:
    """``ModelError`` naming each number of the file for which ``config``, as it was converted, has another one."""
    found: dict[str, set[object]] = {
        **{
            key: {value for name in names if _is_number(value := getattr(config, name, None))}
            for key, names in _FIELDS.items()
        },
        "rope.freq_base": {rope["rope_theta"] for rope in rope_kinds(config) if _is_number(rope.get("rope_theta"))},
        "rope.dimension_count": set(_rotary_widths(config)),
    }
    lost = [
        f"{header.architecture}.{key} = {stated!r:.20} (it takes {', '.join(sorted(map(str, values))) or 'none'})"
        for key, values in found.items()
        if _is_number(stated := header.of_model(key)) and stated and not any(_same(stated, value) for value in values)
    ]
    if lost:
        raise ModelError(f"{path} states what the conversion cannot keep: {listed(lost)}")


def _rotary_widths(config: Any) -> Iterator[float]:
    """How many dimensions of a head are rotated, for each kind of layer and of head."""
    heads = {getattr(config, name, None) for name in ("head_dim", "global_head_dim", "qk_rope_head_dim")}
    if getattr(config, "head_dim", None) is None and getattr(config, "num_attention_heads", None):
        heads.add(config.hidden_size // config.num_attention_heads)
    shares = {_share(rope) for rope in rope_kinds(config)} | {_share(vars(config))}
    for name in ("rotary_dim", "rotary_ndims"):
        if _is_number(width := getattr(config, name, None)):
            yield width
    whole = shares - {None} or {1.0}
    yield from (int(head * share) for head in heads if _is_number(head) for share in whole if share is not None)


def _share(settings: Mapping[str, Any]) -> float | None:
    return next(
        (settings[name] for name in ("partial_rotary_factor", "rotary_pct") if _is_number(settings.get(name))), None
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


def _same(one: Any, other: Any) -> bool:
    return math.isclose(one, other, rel_tol=1e-5)
