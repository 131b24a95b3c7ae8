"""Picking the next token: the largest logit, or a draw that is each prompt's own."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch


class Picker:
    """Chooses a token a row; draws are seeded by the call's seed, the prompt's ids and which repeat of it this is."""

    def __init__(self, prompts: Sequence[Sequence[int]], *, temperature: float, seed: int):
        self._temperature = temperature
        self._keys = _keys(prompts, seed) if temperature > 0 else []

    def pick(self, logits: torch.Tensor, indices: Sequence[int], steps: Sequence[int]) -> list[int]:
        """The next token of each row; ``indices`` are the prompts of the rows, ``steps`` their tokens so far."""
        chosen: list[int] = self.choose(logits, list(zip(indices, steps, strict=True))).tolist()
        return chosen

    def choose(self, logits: torch.Tensor, rows: Sequence[tuple[int, int] | None]) -> torch.Tensor:
        """The same as a tensor where the logits are, which nothing waits for; ``None`` is a row that nobody reads."""
        if self._temperature == 0:
            return logits.argmax(dim=-1)
        draws = torch.tensor([0.0 if row is None else self._draw(*row) for row in rows], dtype=torch.float64)
        if logits.device.type == "mps":  # it has no float64
            return self._drawn(logits.cpu(), draws).to(logits.device)
        return self._drawn(logits, draws.to(logits.device, non_blocking=True))

    def _drawn(self, logits: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        below = torch.softmax(logits.double() / self._temperature, dim=-1).cumsum_(dim=-1)
        points = draws[:, None] * below[:, -1:]
        # A point that rounds up to the sum of all would lie behind the last token.
        chosen: torch.Tensor = torch.searchsorted(below, points, right=True).flatten()
        return chosen.clamp_(max=logits.shape[-1] - 1)

    def _draw(self, index: int, step: int) -> float:
        """A uniform number in [0, 1) that a row gets at a step, whatever happened in other rows."""
        return float(np.random.default_rng([self._keys[index], step]).random())


def _keys(prompts: Sequence[Sequence[int]], seed: int) -> list[int]:
    seen: Counter[tuple[int, ...]] = Counter()
    keys = []
    for prompt in prompts:
        content = tuple(prompt)
        text = f"{seed} {seen[content]} {content}"
        keys.append(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
        seen[content] += 1
    return keys
