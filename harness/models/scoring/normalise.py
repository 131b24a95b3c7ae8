"""From logits to log-probabilities, ranks and moments.

log p = x - logsumexp(x), the sum of exponentials relative to the largest logit in float32 and everything after it in
float64: torch's float32 log_softmax on CPU is biased upward with the size of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

# So many logits of a CPU stay in its cache from one pass over them to the next.
_CACHED_LOGITS = 2**19


@dataclass(frozen=True, slots=True)
class Scores:
    """Of each (row, target) pair ``logprob`` float64 and ``rank``; of each row mean and std of log p under p."""

    logprob: torch.Tensor
    rank: torch.Tensor
    moments: torch.Tensor | None


def score_rows(
    logits: torch.Tensor,
    row: torch.Tensor,
    target: torch.Tensor,
    *,
    stats: bool,
    token_set: torch.Tensor | None = None,
) -> Scores:
    """Scores of ``target[i]`` in ``logits[row[i]]``; ``row`` ascends. NaN or +Inf there gives a non-finite one.

    With ``token_set`` the log-probability is that of the whole set, whatever the target; ranks are the target's.
    """
    step = len(logits) if logits.device.type != "cpu" else max(1, _CACHED_LOGITS // logits.shape[1])
    rows = row.cpu().numpy()
    parts = []
    for begin in range(0, len(logits), step):
        block = logits[begin : begin + step].float()
        low, high = np.searchsorted(rows, [begin, begin + len(block)])
        parts.append(_score_block(block, row[low:high] - begin, target[low:high], stats, token_set))
    moments = torch.cat([p.moments for p in parts if p.moments is not None]) if stats else None
    return Scores(torch.cat([p.logprob for p in parts]), torch.cat([p.rank for p in parts]), moments)


def _score_block(
    block: torch.Tensor, row: torch.Tensor, target: torch.Tensor, stats: bool, token_set: torch.Tensor | None
) -> Scores:
    own = block[row, target]
    rank = _ranks_cpu(block, row, own) if block.device.type == "cpu" else _ranks(block, row, own)
    top = block.amax(-1, keepdim=True)
    shifted = block - top
    weights = shifted.exp()
    total = weights.sum(-1)
    log_total = total.double().log()
    if token_set is not None:
        own = block[:, token_set].double().logsumexp(-1)[row]
    logprob = own.double() - (top[:, 0].double() + log_total)[row]
    return Scores(logprob, rank, _moments(shifted, weights, total, log_total) if stats else None)


def _moments(
    shifted: torch.Tensor, weights: torch.Tensor, total: torch.Tensor, log_total: torch.Tensor
) -> torch.Tensor:
    """[rows, 2] float64: mean and standard deviation of log p under p. A logit of -inf has no weight."""
    shifted = torch.where(weights > 0, shifted, torch.zeros_like(shifted))
    mean = (weights * shifted).sum(-1) / total
    variance = (weights * (shifted - mean[:, None]).square_()).sum(-1) / total
    return torch.stack([mean.double() - log_total, variance.double().sqrt()], dim=1)


def _ranks_cpu(block: torch.Tensor, row: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """How many logits of its row are larger than each pair's own; numpy counts ten times faster than torch here."""
    values = block.numpy()
    counts = [np.count_nonzero(values[r] > x) for r, x in zip(row.tolist(), own.numpy(), strict=True)]
    return torch.tensor(counts, dtype=torch.int64)


def _ranks(block: torch.Tensor, row: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """The same on a GPU, with no more than the block's size at once: one pair of every row at a time."""
    place = torch.arange(len(row), device=row.device) - torch.searchsorted(row, row)
    rank = torch.empty_like(row)
    for k in range(int(place.max()) + 1 if len(row) else 0):
        pairs = (place == k).nonzero()[:, 0]
        chosen = block if len(pairs) == len(block) else block[row[pairs]]
        rank[pairs] = (chosen > own[pairs, None]).sum(-1)
    return rank
