"""Needle: facts hidden at exact depths in prompts of exact length, and whether a model finds them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "sequences": ("basis_points", "depth_sequence", "length_sequence", "spread_depths"),
    "haystack": ("Haystack",),
    "wording": ("Needle", "needle_sentence", "task_wording"),
    "sentences": ("split_sentences",),
    "placing": ("nearest_boundary",),
    "building": ("BuildOptions", "NeedleTask", "build_sample"),
    "sample": ("Sample",),
    "config": ("NeedleConfig",),
    "presets": ("PRESETS",),
    "grid": ("grid_samples", "write_grid"),
    "gridfiles": ("read_folder",),
    "answers": ("Answer", "Answerer", "ModelAnswerer"),
    "cliff": ("samples_needed",),
    "evaluation": ("answered", "evaluate", "grid_evidence"),
    "outputs": ("score_outputs",),
    "scores": ("precision", "score_all", "score_any", "score_boundary"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Lazily, so that collecting the cases imports neither torch nor transformers. No module bears the name of a public
    # function, since importing it would put the module in the function's place.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
