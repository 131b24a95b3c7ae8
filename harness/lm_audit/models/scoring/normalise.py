"""From logits to log-probabilities, ranks and moments.

log p = x - logsumexp(x), the sum of exponentials relative to the largest logit in float32 and everything after it in
float64: torch's float32 log_softmax on CPU is biased upward with the size of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# So many logits of a CPU stay in its cache from one pass over them to the next.
_CACHED_LOGITS = 2**19


@dataclass(frozen=True, slots=True)
class Scores:
    """Of each (row, target) pair ``logprob`` float64 and ``rank``; of each row mean and std of log p under p."""

    logprob: NDArray[np.float64]
    rank: NDArray[np.int64]
    moments: NDArray[np.float64] | None


def score_rows(logits: torch.Tensor, row: Ints, target: Ints, *, stats: bool, token_set: Ints | None = None) -> Scores:
    """Scores of ``target[i]`` in ``logits[row[i]]``; ``row`` ascends. NaN or +Inf there gives a non-finite one.

    With ``token_set`` the log-probability is that of the whole set, whatever the target; ranks are the target's.
    """
    step = len(logits) if logits.device.type != "cpu" else max(1, _CACHED_LOGITS // logits.shape[1])
    parts = []
    for begin in range(0, len(logits), step):
        block = logits[begin : begin + step].float()
        low, high = np.searchsorted(row, [begin, begin + len(block)])
        with np.errstate(invalid="ignore"):  # NaN is found and named by the caller
            parts.append(_score_block(block, row[low:high] - begin, target[low:high], stats, token_set))
    moments = np.concatenate([p.moments for p in parts if p.moments is not None]) if stats else None
    return Scores(np.concatenate([p.logprob for p in parts]), np.concatenate([p.rank for p in parts]), moments)


def _score_block(block: torch.Tensor, row: Ints, target: Ints, stats: bool, token_set: Ints | None) -> Scores:
    rows, targets = (torch.from_numpy(x).to(block.device) for x in (row, target))
    own = block[rows, targets]
    on_cpu = block.device.type == "cpu"
    ranks = torch.from_numpy(_ranks_cpu(block, row, own)) if on_cpu else _ranks(block, row, rows, own)
    top = block.amax(-1, keepdim=True)
    shifted = block - top
    weights = shifted.exp() if stats else shifted.exp_()
    total = weights.sum(-1)
    # One copy: each makes this thread wait for a GPU, and the GPU for this thread. Ranks are exact in float32.
    chosen, rank, largest, sums = _wide_all(own, ranks, top[:, 0], total)
    log_total = np.log(sums)
    asked = chosen if token_set is None else _log_sum(block, token_set)[row]
    logprob = asked - (largest + log_total)[row]
    return Scores(logprob, rank.astype(np.int64), _moments(shifted, weights, total, log_total) if stats else None)


def _wide(values: torch.Tensor) -> NDArray[np.float64]:
    """Float64 on the CPU, which every device can give (MPS itself has none)."""
    return values.cpu().double().numpy()


def _wide_all(*values: torch.Tensor) -> list[NDArray[np.float64]]:
    if values[0].device.type == "cpu":
        return [_wide(one) for one in values]
    parts = _wide(torch.cat([one.float() for one in values]))
    return np.split(parts, np.cumsum([len(one) for one in values])[:-1])


def _log_sum(block: torch.Tensor, token_set: Ints) -> NDArray[np.float64]:
    chosen = block[:, torch.from_numpy(token_set).to(block.device)]
    top = chosen.amax(-1, keepdim=True)
    return _wide(top[:, 0]) + np.log(_wide((chosen - top).exp().sum(-1)))


def _moments(
    shifted: torch.Tensor, weights: torch.Tensor, total: torch.Tensor, log_total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[rows, 2]: mean and standard deviation of log p under p. A logit of -inf has no weight."""
    shifted = torch.where(weights > 0, shifted, torch.zeros_like(shifted))
    mean = (weights * shifted).sum(-1) / total
    variance = (weights * (shifted - mean[:, None]).square_()).sum(-1) / total
    return np.stack([_wide(mean) - log_total, np.sqrt(_wide(variance))], axis=1)


def _ranks_cpu(block: torch.Tensor, row: Ints, own: torch.Tensor) -> Ints:
    """How many logits of its row are larger than each pair's own; numpy counts ten times faster than torch here."""
    values = block.numpy()
    counts = [np.count_nonzero(values[r] > x) for r, x in zip(row.tolist(), own.numpy(), strict=True)]
    return np.array(counts, dtype=np.int64)


def _ranks(block: torch.Tensor, row: Ints, rows: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """The same on a GPU, with no more than the block's size at once; waits for nothing."""
    if np.array_equal(row, np.arange(len(block))):
        return (block > own[:, None]).sum(-1)
    step = len(block)
    parts = [
        (block[rows[begin : begin + step]] > own[begin : begin + step, None]).sum(-1)
        for begin in range(0, len(row), step)
    ]
    return torch.cat(parts) if parts else own.long()
