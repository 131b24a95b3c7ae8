"""From hidden states to logits by the model's own path, so that soft-capping, scaling and biases are what they are.

The model's ``forward`` runs with its body replaced by one that returns given hidden states.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lm_audit.models.causal_module import CausalModule


class Head:
    """The part of ``module`` after its body."""

    def __init__(self, module: CausalModule, body: object):
        self._module = module
        self._body = body

    def logits(self, hidden: torch.Tensor, output_type: Any) -> torch.Tensor:
        """Logits [rows, vocabulary] of hidden states [rows, width]; ``output_type`` is what the body answers with."""
        answer = output_type(last_hidden_state=hidden[None])
        dummy = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        with _replaced_forward(self._body, lambda *args, **kwargs: answer):
            logits: torch.Tensor = self._module(input_ids=dummy, use_cache=False).logits[0]
        return logits


@contextmanager
def _replaced_forward(body: Any, forward: object) -> Iterator[None]:
    own = body.__dict__.get("forward")  # set where a library wraps the forward of this one object
    body.forward = forward
    try:
        yield
    finally:
        if own is None:
            del body.forward
        else:
            body.forward = own
