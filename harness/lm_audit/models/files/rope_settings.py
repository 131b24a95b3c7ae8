"""A config's rotary settings, checked without transformers, which passes over what it does not know or finds twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed
from lm_audit.shared.number_checks import is_number

_PLACES = ("rope_scaling", "rope_parameters")
"""Where a config keeps them: in the older form, beside ``rope_theta``, and in the newer one."""
_BASES = ("rope_theta", "rotary_emb_base", "rope_local_base_freq", "global_rope_theta", "local_rope_theta")
_POSITIVE = ("factor", "rope_theta", "original_max_position_embeddings")
_OUTSIDE = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
"""What may stand beside the settings as well as among them."""

_KINDS = frozenset(
    [
        *("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional", "axial"),
        *("mrope", "su", "xdrope", "ntk_alpha"),
    ]
)
_SAME_KIND = {"mrope": "default", "su": "longrope", "xdrope": "dynamic"}
"""Older names, which transformers replaces by what they came to be called."""

_KEYS = frozenset(
    [
        *("rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings"),
        *("attention_factor", "attn_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
        *("short_factor", "long_factor", "short_mscale", "long_mscale", "low_freq_factor", "high_freq_factor"),
        *("mrope_section", "mrope_interleaved", "interleaved", "xdrope_section", "alpha", "extrapolation_factor"),
        *("finetuned", "llama_4_scaling_beta", "max_position_embeddings", "axes_dim", "axes_lens"),
    ]
)
_LAYER_KINDS = frozenset(
    [
        *("full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention"),
        *("compressed_sparse_attention", "heavily_compressed_attention", "reference_sliding_attention"),
        *("linear_attention", "minimax_m3_sparse", "conv", "moe", "hybrid", "hybrid_sliding", "main", "compress"),
    ]
)
_OF_A_KIND = ("factor", "short_factor", "long_factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow")
"""What does nothing unless a kind of scaling is named."""
_LIKE, _LIKE_AMONG_THEM = 0.85, 0.8
"""From which likeness (of difflib) an unknown name is held for a known one: among all settings, among rotary ones."""


def check_rope(part: Mapping[str, Any], path: Path, *, own_code: bool = False) -> None:
    """``ModelError`` for rotary settings of ``part`` that are no numbers, misspelt, or stated twice and differently.

    ``own_code``: the checkpoint brings code, which may know kinds of its own.
    """
    for name in _BASES:
        _check_positive(part.get(name), name, path)
    _refuse_misspelt(part, path)
    for name in _PLACES:
        value = part.get(name)
        if value and not isinstance(value, Mapping):
            raise ModelError(f"{path}: {name} is {value!r:.60}; expected an object")
        for place, settings in _layers(part, name):
            _check_settings(settings, place, path, own_code=own_code)
        _check_outside(part, name, path)
    _check_one_place(part, path)


def _refuse_misspelt(part: Mapping[str, Any], path: Path) -> None:
    known = (*_PLACES, "rope_theta", "rope_local_base_freq", "partial_rotary_factor", "rotary_emb_base")
    for name in part:
        if name not in known and (like := get_close_matches(str(name), known, 1, _LIKE)) and part.get(like[0]) is None:
            raise ModelError(f"{path}: {name!r:.60} is unknown to transformers; {like[0]} is meant, it seems")


def _layers(part: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Where settings stand, and they: one object, or one for each kind of layer and what stands beside those."""
    value = part.get(name)
    if isinstance(value, Mapping):
        yield name, value
        yield from ((f"{name}.{key}", inner) for key, inner in value.items() if isinstance(inner, Mapping))


def _check_settings(settings: Mapping[str, Any], place: str, path: Path, *, own_code: bool) -> None:
    for name in _POSITIVE:
        _check_positive(settings.get(name), f"{place}.{name}", path)
    for key, value in settings.items():
        known = _LAYER_KINDS if isinstance(value, Mapping) else _KEYS
        like = [] if key in known else get_close_matches(str(key), known, 1, _LIKE_AMONG_THEM)
        if like:
            raise ModelError(f"{path}: {place} has no setting {key!r:.60}; {like[0]} is meant, it seems")
    stated = {key: settings[key] for key in ("rope_type", "type") if settings.get(key) is not None}
    for key, kind in stated.items():
        if not isinstance(kind, str):
            raise ModelError(f"{path}: {place}.{key} is {kind!r:.60}; expected the name of a kind of scaling")
        if kind not in _KINDS and not own_code and kind not in _kinds_here():
            known_kinds = ", ".join(sorted(_KINDS | _kinds_here()))
            raise ModelError(
                f"{path}: {place}.{key} is {kind!r:.60}, a kind of scaling that transformers does not know; it knows"
                f" {known_kinds}"
            )
    scaled = sorted(key for key in _OF_A_KIND if settings.get(key) is not None)
    nested = any(isinstance(value, Mapping) for value in settings.values())
    if scaled and not stated and not nested and not own_code:
        raise ModelError(
            f"{path}: {place} states {listed(scaled)} and no rope_type, so that transformers would scale nothing"
        )
    if len({_SAME_KIND.get(kind, kind) for kind in stated.values()}) > 1:
        raise ModelError(
            f"{path}: {place} states rope_type {stated['rope_type']!r:.40} and type {stated['type']!r:.40}; keep the"
            " right one"
        )


def _kinds_here() -> frozenset[str]:
    """The kinds that this ``transformers`` computes; asked only for one that the table lacks, since it loads torch."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    return frozenset(ROPE_INIT_FUNCTIONS)


def _check_outside(part: Mapping[str, Any], name: str, path: Path) -> None:
    """``ModelError`` for a value beside the settings, or beside those of kinds of layers, of which none there is."""
    value = part.get(name)
    if not isinstance(value, Mapping):
        return
    kinds = {f"{name}.{key}": inner for key, inner in value.items() if isinstance(inner, Mapping)}
    for key in _OUTSIDE:
        _check_reaches(key, part.get(key), kinds or {name: value}, "", path)
    if kinds:
        for key in sorted(_KEYS - {"type", "rope_type", "max_position_embeddings"}):
            _check_reaches(key, value.get(key), kinds, f"{name}.", path)


def _check_reaches(key: str, outer: object, kinds: Mapping[str, Mapping[str, Any]], before: str, path: Path) -> None:
    inner = {place: settings.get(key) for place, settings in kinds.items()}
    if outer is None or None in inner.values() or outer in inner.values():
        return
    place, value = next(iter(inner.items()))
    raise ModelError(
        f"{path}: {before}{key} is {outer} and {place}.{key} is {value}; transformers would take one of them: keep the"
        " right one"
    )


def _check_one_place(part: Mapping[str, Any], path: Path) -> None:
    """``ModelError`` where both places state settings, and not the same: transformers would take the older one."""
    older, newer = part.get("rope_scaling"), part.get("rope_parameters")
    if not isinstance(older, Mapping) or not isinstance(newer, Mapping) or not older or not newer:
        return
    base = part.get("rope_theta")
    kinds = [inner for inner in newer.values() if isinstance(inner, Mapping)] or [newer]
    one = _plain(older, base)
    for inner in kinds:
        other = _plain(inner, base)
        if one == other or (inner is not newer and _baseless(one) == _baseless(other)):
            return
    if any(isinstance(value, Mapping) for value in older.values()) and older == newer:
        return
    other = _plain(kinds[0], base)
    odd = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    told = [f"{key} {one.get(key)!r:.40} and {other.get(key)!r:.40}" for key in odd]
    raise ModelError(
        f"{path} states rotary settings in rope_scaling and, otherwise, in rope_parameters ({listed(told)});"
        " transformers would take rope_scaling alone: keep one of them, whole, rope_theta included"
    )


def _plain(settings: Mapping[str, Any], base: object) -> dict[str, Any]:
    """Settings in one spelling, those that are not stated left out."""
    kind = settings.get("rope_type") or settings.get("type") or "default"
    kept = {key: value for key, value in settings.items() if key not in ("type", "rope_type") and value is not None}
    return {"rope_theta": base, **kept, "rope_type": _SAME_KIND.get(str(kind), kind)}


def _baseless(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without the base, which kinds of layers have of their own."""
    return {key: value for key, value in settings.items() if key != "rope_theta"}


def _check_positive(value: Any, name: str, path: Path) -> None:
    if value is not None and not (is_number(value) and value > 0):
        raise ModelError(f"{path}: {name} is {value!r:.60}; expected a number above 0")
