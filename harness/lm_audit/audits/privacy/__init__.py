"""Privacy audit: planted canaries, four training stages, and which stage leaked.

Public names (loaded on first use, so that collection imports no torch): see ``__all__``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Canary": "canaries",
    "generate_canaries": "canaries",
    "plant_canaries": "canaries",
    "flip_canaries": "canaries",
    "insertion_positions": "insertion",
    "canary_ratio": "insertion",
    "check_ratio": "insertion",
    "build_corpus": "corpus",
    "build_preferences": "preferences",
    "Manifest": "manifest",
    "read_manifest": "manifest",
    "write_manifest": "manifest",
    "score_texts": "scores",
    "extraction": "extract",
    "StagesConfig": "config",
    "run_stages": "stages",
    "audit_stages": "audit",
    "attribute": "attribution",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
