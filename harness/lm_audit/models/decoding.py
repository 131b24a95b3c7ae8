"""A batch of left-padded rows and their cached keys and values: logits of the next token, one step at a time."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


class StepModel:
    """Reads prompts once, then one token a row and step; only the last position goes through the LM head.

    A module that takes no cache (a checkpoint's own code, perhaps) or whose states padding would change (state-space
    models) reads each row whole, by itself, at every step.
    """

    def __init__(self, model: LanguageModel, prompts: Sequence[Sequence[int]]):
        self._module: Any = model.module
        self._device = model.device
        self._accepts = frozenset(inspect.signature(self._module.forward).parameters)
        # Renamed in transformers 5; a checkpoint's own code may still have the old name.
        self._cache_name = "cache" if "cache" in self._accepts else "past_key_values"
        self._rows = [list(prompt) for prompt in prompts]
        self._cache: Any = None
        longest = max(len(row) for row in self._rows)
        self._input = torch.tensor([[0] * (longest - len(row)) + row for row in self._rows], device=self._device)
        self._mask = torch.tensor(
            [[0] * (longest - len(row)) + [1] * len(row) for row in self._rows], device=self._device
        )
        self._positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)

    @property
    def _cached(self) -> bool:
        stateful = getattr(self._module, "_is_stateful", False)
        return not stateful and self._cache_name in self._accepts and "attention_mask" in self._accepts

    def next_logits(self) -> torch.Tensor:
        """Logits (float32) of the token after each row: [rows, vocabulary]."""
        if not self._cached:
            return torch.cat([self._whole_row(row) for row in self._rows])
        arguments: dict[str, Any] = {"attention_mask": self._mask, self._cache_name: self._cache, "use_cache": True}
        if "position_ids" in self._accepts:
            arguments["position_ids"] = self._positions
        output = self._forward(self._input, arguments)
        self._cache = getattr(output, self._cache_name)
        return _last(output)

    def feed(self, tokens: Sequence[int], kept: Sequence[int]) -> None:
        """Go on with the rows ``kept`` (places in the present batch, ascending), each with one more token."""
        if len(kept) < len(self._rows):
            self._keep(kept)
        for row, token in zip(self._rows, tokens, strict=True):
            row.append(token)
        self._input = torch.tensor([[token] for token in tokens], device=self._device)
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
        self._positions = self._positions[:, -1:] + 1

    def _keep(self, kept: Sequence[int]) -> None:
        places = torch.tensor(list(kept), device=self._device)
        self._rows = [self._rows[place] for place in kept]
        self._mask, self._positions = self._mask[places], self._positions[places]
        if self._cache is not None:
            self._cache.batch_select_indices(places)

    def _whole_row(self, row: Sequence[int]) -> torch.Tensor:
        return _last(self._forward(torch.tensor([row], device=self._device), {"use_cache": False}))

    def _forward(self, ids: torch.Tensor, arguments: dict[str, Any]) -> Any:
        if "logits_to_keep" in self._accepts:
            arguments["logits_to_keep"] = 1
        return self._module(input_ids=ids, **arguments)


def _last(output: Any) -> torch.Tensor:
    logits: torch.Tensor = output.logits[:, -1]
    return logits.float()
