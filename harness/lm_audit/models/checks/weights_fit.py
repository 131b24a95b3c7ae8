"""Whether a checkpoint's tensors are the model's: all of them, no others, of the right shapes, and finite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.files.json_file import listed

_HARMLESS = re.compile(
    r"(^|\.)(attn|attention|self_attn)\.(bias_mask|masked_bias|causal_mask)$"
    r"|(^|\.)rotary(_emb)?\.(inv_freq|cos_cached|sin_cached)$"
    r"|(^|\.)embed_positions\.weights$"
    r"|(^|\.)position_ids$"
)
"""Buffers that older versions of transformers saved and that every version computes by itself."""

_BOUNDS = re.compile(r"(^|\.)(input|output)_(min|max)$")
"""Bounds within which a layer clips what goes in and out: infinite where there is none."""

_LAYER = re.compile(r"(?:model\.)?(?:language_model\.)?layers\.(\d+)\.")
_DRAFTS = ("eh_proj", "enorm", "hnorm", "shared_head")
"""Parts of a layer that drafts the token after the next, which lies behind the model's own."""


def check_fit(report: Mapping[str, Any], what: str) -> None:
    """``ModelError`` naming what transformers' loading report (``output_loading_info``) holds against a checkpoint.

    Missing tensors would be random numbers and tensors that are left over were trained as part of another model; tied
    weights and the buffers that a class declares as negligible are not in the report.
    """
    missing = sorted(report.get("missing_keys", ()))
    left = sorted(key for key in report.get("unexpected_keys", ()) if not _HARMLESS.search(key))
    shapes = [
        f"{key} has {list(found)}, its config asks for {list(wanted)}"
        for key, found, wanted in sorted(report.get("mismatched_keys", ()))
    ]
    problems = [
        *([f"missing: {listed(missing)}"] if missing else []),
        *([f"not part of the model: {listed(left)}"] if left else []),
        *([f"of another shape: {listed(shapes)}"] if shapes else []),
        *[" ".join(str(text).split())[:300] for text in report.get("error_msgs", ())],
    ]
    if problems:
        raise ModelError(f"{what}: its tensors are not those of its config; {'; '.join(problems)}")


def check_layers(names: Iterable[str], own: Iterable[str], what: str) -> None:
    """``ModelError`` for layers among the ``names`` of a checkpoint that the model's ``own`` names do not have.

    Some classes pass over a layer by its number, behind which the published model has a head for drafts. Such a head
    is told by its own parts.
    """
    there = {match[1] for name in own if (match := _LAYER.match(name))}
    behind: dict[str, list[str]] = {}
    for name in names if there else ():
        if (match := _LAYER.match(name)) and match[1] not in there:
            behind.setdefault(match[1], []).append(name)
    left = [held for held in behind.values() if not any(part in name for name in held for part in _DRAFTS)]
    if left:
        listing = listed(sorted(name for held in left for name in held))
        raise ModelError(f"{what}: its tensors are not those of its config; not part of the model: {listing}")


def check_finite(module: CausalModule, suspects: Iterable[str], what: str) -> None:
    """``ModelError`` naming weights with NaN or Inf, where the files hold any (``suspects``) and the model uses it."""
    if not list(suspects):
        return
    bad = [
        name
        for name, value in module.state_dict().items()
        if value.is_floating_point() and (value.is_meta or _is_bad(name, value.float()))
    ]
    if bad:
        raise ModelError(f"{what}: NaN or Inf in the weights {listed(sorted(bad))}")


def _is_bad(name: str, values: Any) -> bool:
    return bool(values.isnan().any() if _BOUNDS.search(name) else not values.isfinite().all())
