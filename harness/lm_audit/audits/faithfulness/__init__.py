"""Faithfulness: which tokens made the model say this, and is that explanation true?

Names are imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Attribution": "attribution",
    "DeletionCurve": "deletion",
    "DeletionTest": "deletion",
    "Explainer": "explain",
    "FaithfulnessScores": "metrics",
    "METHODS": "explain",
    "Passage": "passage",
    "attribute": "explain",
    "coverage": "metrics",
    "deletion_curve": "deletion",
    "encode_passage": "passage",
    "faithfulness_scores": "metrics",
    "normalised_score": "metrics",
    "rank_correlation": "metrics",
    "recovery": "metrics",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
