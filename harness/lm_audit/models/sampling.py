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
        if self._temperature == 0:
            greedy: list[int] = logits.argmax(dim=-1).tolist()
            return greedy
        draws = [self._draw(index, step) for index, step in zip(indices, steps, strict=True)]
        probabilities = torch.softmax(logits.cpu().double() / self._temperature, dim=-1)
        below = probabilities.cumsum(dim=-1)
        points = torch.tensor(draws, dtype=torch.float64).unsqueeze(1) * below[:, -1:]
        chosen: list[int] = torch.searchsorted(below, points, right=True).flatten().tolist()
        return chosen

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
