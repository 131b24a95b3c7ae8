"""Settings of a config.json that the class of its model does not read: misspelt ones, and those of another make."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import Attributes, context_window, text_config
from lm_audit.models.files.json_file import listed
from lm_audit.models.loading.quiet import quiet_transformers

_LIKE = 0.85
_OF_EFFECT: dict[str, tuple[object, ...]] = {
    "sliding_window": (0,),
    "final_logit_softcapping": (0,),
    "attn_logit_softcapping": (0,),
    "logit_scale": (1,),
    "logits_scaling": (1,),
    "embedding_multiplier": (1,),
    "residual_multiplier": (1,),
    "attention_multiplier": (1,),
    "scale_emb": (1,),
    "scale_depth": (1,),
    "clip_qkv": (0,),
    "alibi": (False,),
    "qk_norm": (False,),
    "use_qk_norm": (False,),
    "query_pre_attn_scalar": (),
    "attention_chunk_size": (0,),
    "parallel_attn": (False,),
    "use_parallel_residual": (False,),
    "use_bidirectional_attention": (False,),
    "add_cross_attention": (False,),
    "norm_topk_prob": (False,),
    "is_causal": (True,),
    "causal": (True,),
    "bidirectional": (False,),
    "prefix_lm": (False,),
    "is_prefix_lm": (False,),
}
"""Settings that change every answer of the makes that know them, and the values at which they change none."""


_RULES = (
    *("stop_strings", "suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "sequence_bias"),
    *("forced_bos_token_id", "forced_eos_token_id", "no_repeat_ngram_size", "guidance_scale", "min_new_tokens"),
    *("min_length", "watermarking_config", "repetition_penalty", "encoder_repetition_penalty", "num_beams"),
    *("encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "penalty_alpha", "dola_layers"),
)
"""What lets ``generate`` of transformers write another text than the likeliest token after token, sampling aside."""


def tell_unread(config: Mapping[str, Any], module: CausalModule, where: str) -> None:
    """Warn of settings in ``config`` (as the file at ``where`` states it) that are no field of the model's own class.

    Of those only such as change answers elsewhere, and those that look like a field that is not stated.
    """
    made: Any = text_config(module.config)
    if not dataclasses.is_dataclass(made) or config.get("auto_map"):
        return
    part = config.get("text_config")
    stated = part if made is not module.config and isinstance(part, Mapping) else config
    fields = {field.name for field in dataclasses.fields(made)}
    known = fields | set(getattr(made, "attribute_map", {})) | _base_names(made)
    stray = [key for key, value in stated.items() if key not in known and value is not None]
    unread = [f"{key} = {stated[key]!r:.40}" for key in stray if _has_effect(key, stated)]
    if unread:
        warnings.warn(
            f"{where} states {listed(unread)}, which {type(module).__name__} does not know: is it of another make?",
            stacklevel=3,
        )
    inner = stated.get("attn_config")  # of MPT and its kin, which keep those of attention apart
    nested = {**inner, **stated} if isinstance(inner, Mapping) else stated
    if passed := _passed_over(module, made, nested, stray):
        warnings.warn(
            f"{where} states {listed(passed)}, which no line of {type(module).__name__} reads: it computes without",
            stacklevel=3,
        )
    absent = sorted(name for name in fields - set(stated) if not name.startswith("_"))
    for key in stray:
        like = [] if key in _OF_EFFECT else get_close_matches(key, absent, 1, _LIKE)
        if like and not str(key).endswith(like[0]) and getattr(made, like[0], None) != stated[key]:
            warnings.warn(
                f"{where} states {key!r:.60}, which {type(module).__name__} does not know; {like[0]} is not stated and"
                f" is {getattr(made, like[0], None)!r:.40}: is that meant?",
                stacklevel=3,
            )


def _passed_over(module: CausalModule, made: object, stated: Mapping[str, Any], stray: Collection[str]) -> list[str]:
    """Settings of effect that the configuration has and that nothing in the code of the parts names."""
    asked = [key for key in _OF_EFFECT if stated.get(key) is not None and key not in stray and _has_effect(key, stated)]
    asked += [] if (turned := _turned(made)) is None else ["partial_rotary_factor"]
    if not asked:  # most models: no source is read
        return []
    parts: Iterable[object] = module.modules()
    classes = {kind for part in parts for kind in type(part).__mro__} | {*type(made).__mro__}
    names = {kind.__module__ for kind in classes if kind.__module__.startswith("transformers.models.")}
    try:
        code = "".join(inspect.getsource(sys.modules[name]) for name in sorted(names))
    except (OSError, TypeError):  # installed without its sources
        return []
    values = {"partial_rotary_factor": turned, **stated}
    return [f"{key} = {values[key]!r:.40}" for key in asked if not re.search(rf"\.{key}\b|[\"']{key}[\"'](?!:)", code)]


def _turned(made: object) -> object:
    """The share of each head that is to be turned, where it is stated, not all of it, and no kind of scaling reads it:
    transformers takes it into the rotary settings of any make.
    """
    settings = getattr(made, "rope_parameters", None)
    if not isinstance(settings, Mapping) or settings.get("rope_type", "default") != "default":
        return None
    share = settings.get("partial_rotary_factor")
    return None if share in (None, 1) else share


def tell_length(config: Mapping[str, Any], module: CausalModule, where: str) -> None:
    """Warn where ``config`` (the file at ``where``) states no length of texts, and the class's own default is taken."""
    window = context_window(module.config)
    if window is not None and context_window(Attributes(config)) is None and not config.get("auto_map"):
        warnings.warn(
            f"{where} states no length of texts (max_position_embeddings): {window:,} tokens are taken,"
            f" {type(module.config).__name__}'s default; state the length for which the model was trained",
            stacklevel=3,
        )


def tell_unfollowed(module: CausalModule, name: str) -> None:
    """Warn of rules of a generation config that forbid, force or penalise tokens: texts are continued without them."""
    config = getattr(module, "generation_config", None)
    stated = {key: getattr(config, key, None) for key in _RULES}
    rules = [f"{key} = {value!r:.40}" for key, value in stated.items() if value and value != 1]
    if rules:
        warnings.warn(
            f"model {name}: its generation_config.json states {listed(rules)}, which is not followed: texts are"
            " continued as the model alone would",
            stacklevel=2,
        )


def _has_effect(key: str, stated: Mapping[str, Any]) -> bool:
    if key not in _OF_EFFECT or stated[key] in _OF_EFFECT[key]:
        return False
    return key != "sliding_window" or bool(stated.get("use_sliding_window", True))


def _base_names(made: Any) -> set[str]:
    """What a configuration has beside its fields: properties, what it sets itself, and what all have in common."""
    from transformers import PreTrainedConfig

    names = set(dir(type(made))) | set(PreTrainedConfig().to_dict())
    with suppress(Exception), quiet_transformers():  # a configuration may have no defaults
        names |= set(type(made)().to_dict())
    return names
