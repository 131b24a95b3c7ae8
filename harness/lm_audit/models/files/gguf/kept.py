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
    "expert_used_count": ("num_experts_per_tok",),
    "use_parallel_residual": ("use_parallel_residual",),
}
"""Key -> where a configuration may have its value; the shapes of tensors tell the other sizes."""


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
