"""How far two ways of scoring the same text may be apart at a model's precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

_FULL = ("torch.float32", "torch.float64")


def is_full_precision(model: LanguageModel) -> bool:
    """Whether the model computes in float32 or better."""
    return str(model.dtype) in _FULL


def nats_a_token(model: LanguageModel) -> float:
    """Nats a token within which a score must be of a plain forward pass.

    float32 differs by a thousandth of 0.01; half precision rounds differently from one shape of a batch to another.
    """
    return 0.01 if is_full_precision(model) else 0.15
