"""The engine behind ``LanguageModel.loglikelihood``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.errors import ModelError
from harness.models.scoring.plain import forward_logits
from harness.models.scoring.requests import Bos, Encoded, Request, RequestEncoder
from harness.models.scoring.results import TokenScores

if TYPE_CHECKING:
    from harness.models.language_model import LanguageModel


class ScoringEngine:
    """Scores requests with one model."""

    def __init__(self, model: LanguageModel):
        self._model = model
        self._encoder = RequestEncoder(model.tokenizer)

    def score(self, requests: Sequence[Request], *, bos: Bos, stats: bool) -> list[TokenScores]:
        """One ``TokenScores`` for each request, in order."""
        encoded = self._encoder.encode(requests, bos)
        return [self._one(i, item, stats) for i, item in enumerate(encoded)]

    def _one(self, index: int, item: Encoded, stats: bool) -> TokenScores:
        first = item.first_scored
        targets = item.ids[first:]
        if not len(targets):
            empty = np.zeros(0)
            extra = (empty, empty, empty) if stats else (None, None, None)
            return TokenScores(targets, empty, np.zeros(0, dtype=np.int64), True, item.merged, *extra)
        logits = forward_logits(self._model.module, item.ids[:-1])[first - 1 :].double().cpu().numpy()
        if not np.isfinite(logits).all():
            raise ModelError(f"{self._model.name} returned NaN or Inf for request {index}")
        top = logits.max(1, keepdims=True)
        logp = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
        own = logits[np.arange(len(targets)), targets]
        ranks = (logits > own[:, None]).sum(1)
        extra = (None, None, None)
        if stats:
            p = np.exp(logp)
            mean = (p * logp).sum(1)
            extra = (-mean, mean, np.sqrt(np.maximum((p * logp**2).sum(1) - mean**2, 0)))
        return TokenScores(
            targets, logp[np.arange(len(targets)), targets], ranks, bool((ranks == 0).all()), item.merged, *extra
        )
