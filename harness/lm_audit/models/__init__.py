"""Models: from a spec to a :class:`LanguageModel` that scores and generates. The package itself imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.models.loading.spec import ModelSpec, parse_spec
from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.models.files.source import check_spec
    from lm_audit.models.generation.continuation import Generation
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.loading.cache import ModelCache
    from lm_audit.models.loading.from_spec import load_model
    from lm_audit.models.scoring.results import TokenScores
    from lm_audit.models.text.tokenizer_loading import load_tokenizer
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

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
