"""Models: from a spec to a :class:`LanguageModel` that scores and generates. The package itself imports no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lm_audit.models.spec import ModelSpec, parse_spec

if TYPE_CHECKING:
    from lm_audit.models.cache import ModelCache
    from lm_audit.models.generation import Generation
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.loading import check_spec, load_model, load_tokenizer
    from lm_audit.models.scoring.results import TokenScores

__all__ = [
    "Generation",
    "LanguageModel",
    "ModelCache",
    "ModelSpec",
    "TokenScores",
    "check_spec",
    "load_model",
    "load_tokenizer",
    "parse_spec",
]

_LAZY = {
    "Generation": "generation",
    "LanguageModel": "language_model",
    "ModelCache": "cache",
    "TokenScores": "scoring.results",
    "check_spec": "loading",
    "load_model": "loading",
    "load_tokenizer": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
