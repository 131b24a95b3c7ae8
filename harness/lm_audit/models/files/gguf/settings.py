"""What a GGUF file states and transformers' conversion leaves out: biases and rotary scaling, as a configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.context import Attributes, context_window
from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.kept import check_every_key, check_kept
from lm_audit.models.files.gguf.taken_over import take_over
from lm_audit.models.files.json_file import listed

ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
_BIAS = re.compile(r"blk\.\d+\.(?P<part>attn_[qkv]|attn_output|ffn_gate|ffn_up|ffn_down)\.bias")

_NEEDED = ("context_length", "embedding_length", "block_count")
_EPSILONS = ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon")
"""What llama.cpp asks every file for, and for which the conversion would put a default of its own."""

_SCALES_FULL = ("gemma3_text", "olmo3")
"""Where scaling is of the layers that see all, and windowed ones turn as they did before."""

Factors = Callable[[str], list[float]]
"""The values of a small tensor of the file."""


def complete_config(config: Any, header: GgufHeader, path: Path, factors: Factors) -> Any:
    """``config`` as transformers read it, with the biases and the rotary scaling that the file states.

    Raises ``ModelError`` naming what the file states and this configuration cannot.
    """
    check_header(header, path)
    take_over(config, header)
    _check_head_size(config, header, path)
    _check_biases(header, path)
    parts = {match["part"] for name in header.tensors if (match := _BIAS.fullmatch(name))}
    for attribute, wanted in (("attention_bias", "attn_"), ("mlp_bias", "ffn_")):
        if any(part.startswith(wanted) for part in parts) and getattr(config, attribute, None) is False:
            setattr(config, attribute, True)
    rope = _rope(config, header, path, factors)
    if rope is not None and config.model_type in _SCALES_FULL:
        full = {**config.rope_parameters["full_attention"], **rope}
        config.rope_parameters = {**config.rope_parameters, "full_attention": full}
    elif rope is not None:
        config.rope_parameters = {**_own(config), **rope, "rope_theta": _theta(config)}
        if "original_max_position_embeddings" in rope and hasattr(config, "original_max_position_embeddings"):
            config.original_max_position_embeddings = rope["original_max_position_embeddings"]
    check_every_key(config, header, path)
    check_kept(config, header, path)
    return config


def _in_groups(header: GgufHeader) -> bool:
    """Whether experts are as many as of the published DeepSeek V2 (160), V3 and R1 (256), which choose groups first.

    Converters stated the groups from late 2025 on only; a file without them would be another model.
    """
    return header.of_model("expert_count") in (160, 256)


def _check_needed(header: GgufHeader, path: Path) -> None:
    lacking = [f"{header.architecture}.{key}" for key in _NEEDED if header.of_model(key) is None]
    lacking += [
        f"{header.architecture}.{key}"
        for key in ("expert_group_count", "expert_group_used_count")
        if header.architecture == "deepseek2" and _in_groups(header) and header.of_model(key) is None
    ]
    if not any(header.of_model(key) is not None for key in _EPSILONS):
        lacking.append(f"{header.architecture}.{_EPSILONS[0]}")
    if lacking:
        raise ModelError(f"{path} does not state {listed(lacking)}")


def check_header(header: GgufHeader, path: Path) -> None:
    """``ModelError`` naming what every file states and this one does not, or states against its own tensors."""
    _check_needed(header, path)
    heads = {"attn_q": header.of_model("attention.head_count")}
    heads["attn_k"] = heads["attn_v"] = header.of_model("attention.head_count_kv") or heads["attn_q"]
    for key, parts in _HEADS.items():
        stated = header.of_model(key)
        if stated is None or _several_sizes(header):
            continue
        if not isinstance(stated, int) or isinstance(stated, bool) or stated <= 0:
            raise ModelError(
                f"{path} states {header.architecture}.{key} = {stated!r:.20}; a number above 0 is expected"
            )
        for name, shape in header.tensors.items():
            part = next((part for part in parts if name.endswith(f".{part}.weight")), None)
            count = heads.get(part or "")
            # A gated query has its gate behind it; a layer may have a number of heads of its own, a list then.
            if isinstance(count, int) and not isinstance(count, bool) and shape[-1] % (count * stated or 1):
                raise ModelError(
                    f"{path} states {header.architecture}.{key} = {stated}, but {name} has {shape[-1]} rows for"
                    f" {count} heads"
                )


_HEADS = {"attention.key_length": ("attn_q", "attn_k"), "attention.value_length": ("attn_v",)}


def _several_sizes(header: GgufHeader) -> bool:
    """Whether heads are stored compressed (MLA), or have other sizes in windowed layers."""
    return any(header.of_model(f"attention.{key}") is not None for key in ("kv_lora_rank", "key_length_swa"))


def _check_head_size(config: object, header: GgufHeader, path: Path) -> None:
    """The conversion of some architectures passes over the size of a head and takes one of its own."""
    stated, own = header.of_model("attention.key_length"), getattr(config, "head_dim", None)
    own = own or _quotient(header.of_model("embedding_length"), header.of_model("attention.head_count"))
    if stated is not None and own is not None and own != stated and not _several_sizes(header):
        raise ModelError(
            f"{path} states {header.architecture}.attention.key_length = {stated}, which the conversion cannot keep:"
            f" it takes {own}"
        )


def _quotient(whole: object, count: Any) -> int | None:
    both = isinstance(whole, int) and isinstance(count, int) and not isinstance(count, bool) and count > 0
    return whole // count if both else None


def _check_biases(header: GgufHeader, path: Path) -> None:
    """A bias of one layer that another layer lacks was lost: it is not zero."""
    layers: dict[str, set[str]] = {}
    for name in header.tensors:
        if match := _BIAS.fullmatch(name):
            layers.setdefault(match["part"], set()).add(name)
    for part, there in sorted(layers.items()):
        of_all = (name.removesuffix("weight") + "bias" for name in header.tensors if name.endswith(f".{part}.weight"))
        lost = sorted(set(of_all) - there)
        if lost:
            raise ModelError(f"{path} lacks {listed(lost)}, which its other layers have")


def stated_window(header: GgufHeader, path: Path) -> int | None:
    """The context that the converted configuration will state, from the header alone; None where it states none.

    Raises what the conversion raises for the rotary scaling.
    """
    length = header.of_model("context_length")
    if not isinstance(length, int) or isinstance(length, bool) or length <= 0:
        return None
    plain = Attributes({"max_position_embeddings": length, "rope_parameters": {}})
    rope = _rope(plain, header, path, lambda _: [1.0] * (_pairs(header) or 1))  # no length hangs on their values
    return context_window(Attributes({"max_position_embeddings": length, "rope_parameters": rope or {}}))


def _theta(config: object) -> float:
    rope = getattr(config, "rope_parameters", None) or {}
    return float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0)


def _own(config: Any) -> dict[str, Any]:
    """What the architecture's rotary settings have that no file states."""
    current = getattr(config, "rope_parameters", None) or {}
    return {name: current[name] for name in ("partial_rotary_factor", "truncate") if name in current}


def _rope(config: Any, header: GgufHeader, path: Path, factors: Factors) -> dict[str, Any] | None:
    """The rotary settings, None where the file states none beside the base."""
    kind = header.of_model("rope.scaling.type")
    scale = header.of_model("rope.scaling.factor") or header.of_model("rope.scale_linear") or 1.0
    if not isinstance(scale, int | float) or not 0 < scale < math.inf:
        raise ModelError(f"{path} scales rotary positions by {scale!r:.40}; a positive number is expected")
    held = [name for name in ROPE_TENSORS if name in header.tensors]
    plain = kind == "none" or (kind is None and scale == 1.0)  # llama.cpp: of no kind, whatever the factor
    share = header.of_model("rope.scaling.attn_factor")
    if not held and kind != "yarn" and share not in (None, 1.0):  # llama.cpp multiplies by it, whatever the kind
        raise ModelError(
            f"{path} states what the conversion cannot keep: {header.architecture}.rope.scaling.attn_factor ="
            f" {share!r:.20}, without YaRN or factors"
        )
    if not held and plain:
        _refuse_lost_factors(header, path)
        return None
    current = getattr(config, "rope_parameters", None)
    if isinstance(current, dict) and getattr(config, "model_type", None) in _SCALES_FULL:
        current = current.get("full_attention")
    if not isinstance(current, dict) or any(isinstance(value, dict) for value in current.values()):
        raise ModelError(
            f"{path} scales rotary positions ({kind or held[0]}), for which its architecture has no setting"
        )
    context = int(config.max_position_embeddings)
    original = int(header.of_model("rope.scaling.original_context_length") or context)
    lacking = [name for name in ROPE_TENSORS[1:] if name not in header.tensors]
    if lacking and (kind == "longrope" or len(lacking) == 1):
        raise ModelError(f"{path} scales rotary positions by LongRoPE and lacks {lacking[0]}")
    if held and (plain or kind == "longrope"):
        pairs = _pairs(header)
        return _by_factors(header, held, context, original, lambda name: _positive(factors(name), name, path, pairs))
    if not held and kind == "yarn":
        return _yarn(header, scale, original)
    if not held and kind in (None, "linear"):
        return {"rope_type": "linear", "factor": float(scale)}
    raise ModelError(f"{path} scales rotary positions by {kind!r:.40}" + (f" and {held[0]}" if held else ""))


def _refuse_lost_factors(header: GgufHeader, path: Path) -> None:
    """Phi-3's longer files hold LongRoPE's factors, and name no kind of scaling."""
    original, context = (header.of_model(key) for key in ("rope.scaling.original_context_length", "context_length"))
    if header.architecture == "phi3" and isinstance(original, int) and original < context:
        raise ModelError(
            f"{path} lengthens {original} positions to {context} and lacks {' and '.join(ROPE_TENSORS[1:])}"
        )


def _pairs(header: GgufHeader) -> int:
    """How many pairs of a head's dimensions the file says are rotated; 0 where it does not."""
    return int(header.of_model("rope.dimension_count") or 0) // 2


def _positive(values: list[float], name: str, path: Path, pairs: int) -> list[float]:
    if pairs and len(values) != pairs:
        raise ModelError(f"{path}: {name} has {len(values)} factors, and {pairs} pairs of dimensions are rotated")
    bad = [value for value in values if not 0 < value < math.inf]
    if bad:
        raise ModelError(f"{path}: {name} holds {bad[0]!r}; it divides rotary frequencies by positive numbers")
    return values


def _by_factors(header: GgufHeader, held: list[str], context: int, original: int, factors: Factors) -> dict[str, Any]:
    """One divisor a frequency, as Llama 3's scaling is stored (one list), or LongRoPE's two."""
    attention = header.of_model("rope.scaling.attn_factor")
    if "rope_freqs.weight" in held:
        both, attention, original = factors("rope_freqs.weight"), attention or 1.0, context
        lists = {"short_factor": both, "long_factor": both}
    else:
        lists = {f"{name}_factor": factors(f"rope_factors_{name}.weight") for name in ("short", "long")}
    rope = {
        "rope_type": "longrope",
        "original_max_position_embeddings": original,
        "factor": context / original,
        **lists,
    }
    return rope if attention is None else {**rope, "attention_factor": float(attention)}


def _yarn(header: GgufHeader, scale: float, original: int) -> dict[str, Any]:
    rope = {"rope_type": "yarn", "factor": float(scale), "original_max_position_embeddings": original}
    for key, name in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
        value = header.of_model(f"rope.scaling.{key}")
        if value is not None:
            rope[name] = float(value)
    # The converter writes the whole factor of a model's config under the first key; the second one multiplies.
    whole, share = header.of_model("rope.scaling.yarn_attn_factor"), header.of_model("rope.scaling.attn_factor")
    if whole:
        rope["attention_factor"] = float(whole)
    elif share is not None and share != 1.0:
        rope["attention_factor"] = float(share) * (0.1 * math.log(scale) + 1.0)
    if header.architecture == "deepseek2" and (tenth := header.of_model("rope.scaling.yarn_log_multiplier")):
        rope |= {"mscale": 10.0 * float(tenth), "mscale_all_dim": 10.0 * float(tenth)}
    return rope
