"""Log-likelihoods of a deletion curve once more, by plain forward passes: what its scores must agree with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve
from lm_audit.audits.faithfulness.passage.tokens import Passage

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def difference_from_plain(model: LanguageModel, passage: Passage, curve: DeletionCurve, replacement: int) -> float:
    """The largest difference of the curve's ``scores`` from plain passes, in nats a generated token.

    For features that are the user's tokens, overwritten by the token ``replacement`` in the curve's own ``groups``.
    Infinite where a score is no number.
    """
    import torch

    ids, start = torch.tensor([passage.ids], device=model.module.device), len(passage.prompt_ids)
    apart = []
    with torch.no_grad():
        for group, score in zip([(), *curve.groups], curve.scores, strict=True):
            for feature in group:
                ids[0, passage.user[feature]] = replacement
            logprobs = model.module(ids).logits[0, start - 1 : -1].double().log_softmax(dim=-1)
            total = float(logprobs.gather(1, ids[0, start:, None]).sum())
            apart.append(abs(total - float(score)) / max(1, len(passage.generation_ids)))
    found = float(np.max(apart))
    return found if np.isfinite(found) else float("inf")
