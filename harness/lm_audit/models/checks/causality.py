"""Proof that a model reads from left to right: what follows must not change what the model said before it.

Masked models (BERT and its kin) and permuted ones (XLNet) load as causal language models, and their "predictions" have
seen the very token that they predict. Others (ProphetNet) see how long the whole text is.
"""

from __future__ import annotations

import warnings

import torch

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.loading.placement import embedding_device

_TOKENS, _BEGUN = 8, 5
_SHARE = 1e-3
"""How much of what a token changes after itself may appear before it: rounding in float32, not information."""
_HALF_SHARE = 0.05
_LEAST = 1e-6
"""Logits that move by less do not move."""


@torch.inference_mode()
def prove_causal(module: CausalModule, name: str) -> None:
    """``ModelError`` with the reason where the last of eight tokens, or that there are more, moves the logits before.

    Costs four forward passes of at most eight tokens. Earlier logits are compared with how far they move when a token
    before them changes, so that neither the scale of the logits nor rounding in half precision decides. A model whose
    logits do not move at all is a warning.
    """
    if getattr(module.config, "is_encoder_decoder", False):
        raise ModelError(f"model {name} is an encoder-decoder model; only causal language models are audited")
    training = module.training
    module.eval()
    try:
        ids = _probe_ids(module)
        rows = (ids, _changed(ids, -1), _changed(ids, 0), ids[:_BEGUN])
        base, last, first, begun = (_logits(module, row) for row in rows)
    except (ValueError, TypeError, RuntimeError, KeyError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"model {name} cannot read a text of {_TOKENS} tokens: {type(error).__name__}: {reason}"
        ) from error
    finally:
        module.train(training)
    if not all(bool(torch.isfinite(table).all()) for table in (base, last, first, begun)):
        return  # a request that gives NaN is refused by its number
    if (moved := _distance(base, first)) < _LEAST:
        warnings.warn(
            f"model {name} answers the same whatever it reads: another first of {_TOKENS} tokens moves no logit (by"
            f" {moved:.1g}), as where weights are zeros or all alike",
            stacklevel=2,
        )
    scale = max(_distance(base[1:], first[1:]), _LEAST)
    most = scale * (_SHARE if module.dtype in (torch.float32, torch.float64) else _HALF_SHARE)
    if (moved := _distance(base[:-1], last[:-1])) > most:
        raise ModelError(
            f"model {name} ({type(module).__name__}) is not causal: changing the last of {_TOKENS} tokens moves the"
            f" logits before it by {moved:.3g}, so it sees what it should predict (a masked or permuted"
            " language model); only causal language models are audited"
        )
    if (moved := _distance(base[:_BEGUN], begun)) > most:
        raise ModelError(
            f"model {name} ({type(module).__name__}) is not causal: three more tokens behind a text of {_BEGUN} move"
            f" its logits by {moved:.3g} whatever they are, so that no prediction of it is one number; only causal"
            " language models are audited"
        )


def _probe_ids(module: CausalModule) -> list[int]:
    """Eight ids from the middle of the vocabulary, where no special token is likely to be."""
    config = module.config.get_text_config()
    stated = [getattr(config, f"{kind}_token_id", None) for kind in ("bos", "eos", "pad", "unk", "sep", "cls", "mask")]
    # Several tokens end a text of many models (Llama 3.1, Gemma 3), whose config lists them.
    special = {number for value in stated for number in (value if isinstance(value, list | tuple) else [value])}
    size = int(module.get_input_embeddings().weight.shape[0])  # which PEFT's wrappers have too
    start = size // 3
    plain = [number for number in range(start, min(size, start + 64)) if number not in special]
    return (plain * _TOKENS)[: _TOKENS + 2][:_TOKENS]


def _changed(ids: list[int], place: int) -> list[int]:
    """The same with another token at one place."""
    row = list(ids)
    row[place] = next((number for number in reversed(ids) if number != row[place]), row[place])
    return row


def _logits(module: CausalModule, row: list[int]) -> torch.Tensor:
    ids = torch.tensor([row], device=embedding_device(module))
    logits: torch.Tensor = module(input_ids=ids, use_cache=False).logits[0]
    return logits.float()


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Root mean square of the differences, logits shifted to mean 0 at each position."""
    difference = (one - one.mean(-1, keepdim=True)) - (other - other.mean(-1, keepdim=True))
    return float(difference.square().mean().sqrt())
