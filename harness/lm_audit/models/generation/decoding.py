"""A batch of left-padded rows and their cached keys and values: logits of the next token, one step at a time."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import key_layers
from lm_audit.models.context import changes_at_every_step, uniform_length


class StepModel:
    """Reads prompts once, then one token a row and step; only the last position goes through the LM head.

    ``cached`` = False reads each row whole, by itself, at every step: what a module needs that takes no cache (state-
    space models, a checkpoint's own code). Where a single row grows beyond the length at which its rotation changes
    (LongRoPE, dynamic NTK), what is in the cache is read anew, so that every step is that of the plain forward pass.
    """

    def __init__(
        self, module: CausalModule, device: torch.device, prompts: Sequence[Sequence[int]], *, cached: bool = True
    ):
        self._module = module
        self._device = device
        self._cached = cached
        self._turn = uniform_length(module.config)
        self._accepts = frozenset(inspect.signature(self._module.forward).parameters)
        # Renamed in transformers 5; a checkpoint's own code may still have the old name.
        self._cache_name = "cache" if "cache" in self._accepts else "past_key_values"
        self._rows = [list(prompt) for prompt in prompts]
        self._begin()

    def _begin(self) -> None:
        """The rows whole as the next input, and nothing in the cache."""
        self._cache: Any = None
        longest = max(len(row) for row in self._rows)
        self._input = torch.tensor([[0] * (longest - len(row)) + row for row in self._rows], device=self._device)
        self._mask = torch.tensor(
            [[0] * (longest - len(row)) + [1] * len(row) for row in self._rows], device=self._device
        )
        self._positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)

    def next_logits(self) -> torch.Tensor:
        """Logits (float32) of the token after each row: [rows, vocabulary]."""
        if not self._cached or self._turns_at_every_step():
            return torch.cat([self._whole_row(row) for row in self._rows])
        arguments: dict[str, Any] = {"attention_mask": self._mask, self._cache_name: self._cache, "use_cache": True}
        if "position_ids" in self._accepts:
            arguments["position_ids"] = self._positions
        output = self._forward(self._input, arguments)
        self._cache = getattr(output, self._cache_name)
        return _last(output)

    def feed(self, tokens: Sequence[int], kept: Sequence[int]) -> None:
        """Go on with the rows ``kept`` (places in the present batch, ascending), each with one more token."""
        anew = len(kept) < len(self._rows) and not self._keep(kept)
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        self._input = torch.tensor([[token] for token in tokens], device=self._device)
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
        self._positions = self._positions[:, -1:] + 1
        if anew or (self._turn is not None and max(map(len, self._rows)) == self._turn + 1):
            self._begin()

    def _turns_at_every_step(self) -> bool:
        longest = max(map(len, self._rows))
        return self._turn is not None and longest > self._turn and changes_at_every_step(self._module.config)

    def _keep(self, kept: Sequence[int]) -> bool:
        """Let the other rows go; whether the cache could be cut to those kept."""
        places = torch.tensor(list(kept), device=self._device)
        self._rows = [self._rows[place] for place in kept]
        self._mask, self._positions = self._mask[places], self._positions[places]
        if self._cache is None:
            return True
        # A layer of keys and of a state beside them (Inkling's) selects among its keys alone.
        if not key_layers(self._cache, windows=True):
            return False
        self._cache.batch_select_indices(places)
        return True

    def _whole_row(self, row: Sequence[int]) -> torch.Tensor:
        return _last(self._forward(torch.tensor([row], device=self._device), {"use_cache": False}))

    def _forward(self, ids: torch.Tensor, arguments: dict[str, Any]) -> Any:
        if "logits_to_keep" in self._accepts:
            arguments["logits_to_keep"] = 1
        return self._module(input_ids=ids, **arguments)


def _last(output: Any) -> torch.Tensor:
    logits: torch.Tensor = output.logits[:, -1]
    return logits.float()
