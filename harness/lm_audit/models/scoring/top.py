"""The most likely token at a scored position and its margin, with the repetition penalty that ``generate`` applies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_PAIRS_AT_ONCE = 128


def top_tokens(
    logits: torch.Tensor, row: Ints, contexts: Sequence[Ints], penalty: float
) -> tuple[Ints, Floats, Floats]:
    """For each pair the largest logit's token and its lead over the second, after ``penalty`` on the context's tokens,
    and the lead that the largest logit had before.

    Pair i reads ``logits[row[i]]``; ``contexts[i]`` are all ids before its position. A penalised logit is divided by
    ``penalty`` where it is positive and multiplied where it is negative (Keskar et al. 2019, as in ``transformers``).
    Of equal logits the smallest id wins. Leads are float64, in logits.
    """
    ids, leads, plain = np.empty(len(row), dtype=np.int64), np.empty(len(row)), np.empty(len(row))
    for begin in range(0, len(row), _PAIRS_AT_ONCE):
        part = slice(begin, begin + _PAIRS_AT_ONCE)
        values = logits[torch.from_numpy(row[part]).to(logits.device)].float()
        if penalty != 1.0:
            _, plain[part] = _best_two(values.clone())
            _penalise(values, contexts[part], penalty)
        ids[part], leads[part] = _best_two(values)
    return ids, leads, leads if penalty == 1.0 else plain


def _penalise(values: torch.Tensor, contexts: Sequence[Ints], penalty: float) -> None:
    for pair, context in enumerate(contexts):
        seen = torch.from_numpy(np.unique(context)).to(values.device)
        own = values[pair, seen]
        values[pair, seen] = torch.where(own < 0, own * penalty, own / penalty)


def _best_two(values: torch.Tensor) -> tuple[Ints, Floats]:
    ids = values.argmax(-1, keepdim=True)
    best = values.gather(1, ids)[:, 0]
    values.scatter_(1, ids, -torch.inf)
    return ids[:, 0].cpu().numpy(), (best - values.amax(-1)).cpu().double().numpy()
