"""Bias: log-probability preference between words across social groups, and the public bias benchmarks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "lexicon": ("Axis", "PreferenceSet", "WordPair", "load_preference_set"),
    "linting": ("lint", "lint_tokens"),
    "minimal": ("ProbeResult", "minimal_probe", "probe_evidence"),
    "words": ("word_loglikelihood",),
    "grid": ("GridMeasurement", "measure_grid"),
    "contrasts": ("Contrast", "all_contrasts"),
    "preference": ("axis_evidence", "preference_grid"),
    "planted": ("decisions", "nonce_contrast", "nonce_prompts", "plant_preference"),
    "grid_controls": ("control_evidence",),
    "public_controls": ("public_control",),
    "rows": ("load_rows",),
    "public_sets": ("SETS", "load_set"),
    "sampling": ("stratified_sample",),
    "crows_audit": ("crows_pairs",),
    "stereoset_audit": ("stereoset",),
    "wino_audit": ("winobias", "winogender"),
    "winogender_items": ("load_occupation_stats",),
    "bbq_audit": ("bbq",),
    "counterfactual": ("counterfactual_swap", "load_swap_items"),
    "refusal": ("load_refusal_set", "refusal_rates"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Lazily, so that collecting the cases imports neither torch nor pandas. No module bears the name of a public
    # function, since importing it would put the module in the function's place.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    return getattr(import_module(f"{__name__}.{home}"), name)
