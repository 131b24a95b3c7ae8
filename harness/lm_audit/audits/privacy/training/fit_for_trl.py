"""What TRL's trainers take for granted of a model, and train otherwise than it is where it does not hold."""

from __future__ import annotations

from typing import Any

import torch

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.files.json_file import listed

_PROBE = 8
_SHARE = 1e-2
"""Of the spread of the log-probabilities: rounding on any device, and no other head."""


def require_copied(module: Any) -> None:
    """``ModelError`` for an adapter that DPO's reference would have in part: TRL copies tensors by their names."""
    trained = [name for name, value in module.named_parameters() if value.requires_grad]
    left = [name for name in trained if ".default." not in name]
    kind = module.peft_config["default"]
    if left or getattr(kind, "bias", "none") != "none":
        what = f"{listed(left)} of it" if left else f"the biases (bias = {kind.bias!r}) of it"
        raise ModelError(
            f"the base is an adapter of type {getattr(kind.peft_type, 'value', kind.peft_type)}, and TRL's reference of"
            f" DPO would be without {what}; use trainer='own', or merge the adapter and name the merged folder"
        )


@torch.no_grad()
def require_same_head(module: CausalModule) -> None:
    """``ModelError`` where TRL's own product of hidden states and head is not what the model predicts.

    It knows a scale and a cap of logits, and no layer between the two (ModernBERT's decoder, BERT's kin).
    """
    embedding = module.get_input_embeddings().weight
    ids = torch.arange(embedding.shape[0] // 3, embedding.shape[0] // 3 + _PROBE, device=embedding.device)[None]
    ids %= embedding.shape[0]
    by_trl: Any = module
    training = module.training
    module.eval()
    try:
        logits = module(input_ids=ids, use_cache=False).logits[:, :-1].float()
        found = by_trl(input_ids=ids, labels=ids, use_cache=False, fused_lm_head=True).log_probs
    except AttributeError as error:
        raise ModelError(f"TRL cannot train a {_name(module)} ({error}); use trainer='own'") from error
    finally:
        module.train(training)
    every = torch.log_softmax(logits, -1)
    wanted = every.gather(-1, ids[:, 1:, None])[..., 0]
    off = float((wanted - found.to(wanted.device)).abs().max())
    if not off <= _SHARE * max(float(every.std()), 0.1):
        raise ModelError(
            f"TRL computes other log-probabilities than a {_name(module)} does (by up to {off:.2g} nats a token: it"
            " passes over a part of the model's head) and would train on those; use trainer='own'"
        )


def _name(module: Any) -> str:
    plain = module.get_base_model() if hasattr(module, "get_base_model") else module
    return type(plain).__name__
