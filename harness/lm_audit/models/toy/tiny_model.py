"""The embedded toy, loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.models.loading.from_spec import load_model
from lm_audit.models.toy.tiny import TinySettings, tiny_folder

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def tiny_model(seed: int = 0, *, settings: TinySettings | None = None) -> LanguageModel:
    """The trained base model of ``seed`` on CPU in float32: shipped (seed 0), cached, or trained now (ten seconds)."""
    model = load_model(tiny_folder(seed, settings), device="cpu", dtype="float32")
    model.name = f"tiny:{seed}" if seed else "tiny"
    return model
