"""How far two ways of scoring the same text may be apart at a model's precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from lm_audit.models import LanguageModel
    from lm_audit.models.causal_module import CausalModule

_FULL = ("torch.float32", "torch.float64")


def is_full_precision(model: LanguageModel | CausalModule) -> bool:
    """Whether the model computes in float32 or better."""
    return str(model.dtype) in _FULL


def nats_a_token(model: LanguageModel) -> float:
    """Nats a token within which a score must be of a plain forward pass.

    float32 differs by a thousandth of 0.01; half precision rounds differently from one shape of a batch to another.
    """
    return 0.01 if is_full_precision(model) else 0.15


def distance(off: torch.Tensor, *, full: bool) -> float:
    """How far log-probabilities of a step are apart, by their differences ``off``: the largest of float32 (``full``).

    Of half precision the root of the mean square, since rounding may move a single one far.
    """
    return float(off.abs().max() if full else off.square().mean().sqrt())


def step_limit(*, full: bool) -> float:
    """The :func:`distance` (nats) up to which two ways to make a step of a generation agree."""
    return 1e-3 if full else 0.1
