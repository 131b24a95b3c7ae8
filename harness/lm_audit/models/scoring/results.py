"""What the scoring engine answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """The scores of one request's target tokens, each given everything before it.

    ``token_ids``        int64 [n], the tokens that were scored. An empty prefix without a BOS leaves the first target
                         token out, since nothing predicts it.
    ``logprobs``         float64 [n], log p(token | what precedes it), in nats (<= 0).
    ``ranks``            int64 [n], how many logits are strictly larger (0 = the most likely token).
    ``greedy``           True where every rank is 0 (also where nothing was scored).
    ``boundary_merged``  True where the first target token also covers the end of the prefix text.
    ``entropy``          float64 [n], nats, of the vocabulary distribution at each position (only with ``stats=True``).
    ``mean_logprob``     float64 [n], its expected log-probability, sum p log p = -entropy (Min-K%++ calls it mu).
    ``std_logprob``      float64 [n], the standard deviation of log p under p (Min-K%++ calls it sigma).
    ``top_id``           the most likely token at the first scored position (only with ``top=True``), after the
                         repetition penalty on all tokens before it; of equals the smallest id.
    ``top_lead``         by how many logits it leads the second, after the penalty.
    ``top_margin``       by how many logits the largest logit leads the second without any penalty.
    """

    token_ids: NDArray[np.int64]
    logprobs: NDArray[np.float64]
    ranks: NDArray[np.int64]
    greedy: bool
    boundary_merged: bool
    entropy: NDArray[np.float64] | None = None
    mean_logprob: NDArray[np.float64] | None = None
    std_logprob: NDArray[np.float64] | None = None
    top_id: int | None = None
    top_lead: float | None = None
    top_margin: float | None = None

    @property
    def total(self) -> float:
        """Log-probability of the whole target in nats, the sum of ``logprobs``."""
        return float(self.logprobs.sum())

    def __len__(self) -> int:
        return len(self.token_ids)
