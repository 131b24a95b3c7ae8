"""What is wrong with the scores that a control is about to judge: some that plain forward passes do not give, or too
few that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.models.checks.agreement import nats_a_token

if TYPE_CHECKING:
    from lm_audit.audits.privacy.data.canaries import Canary
    from lm_audit.audits.privacy.measure.stage_scores import StageScores
    from lm_audit.models import LanguageModel

CHECKED = 3
"""So many canaries of each role are scored a second time."""


def plain_score(model: LanguageModel, canary: Canary) -> float:
    """Mean log-probability (nats) of the secret's tokens by one plain pass, for tokenizers of bytes."""
    import torch

    from lm_audit.models.scoring.requests import default_bos

    head = list(default_bos(model.tokenizer))
    ids = [*head, *model.tokenizer(canary.text, add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        logits = model.module(torch.tensor([ids], device=model.module.device)).logits[0].double()
    logprobs = logits.log_softmax(dim=-1)
    first, last = (len(head) + place for place in canary.secret_span)
    return float(np.mean([float(logprobs[at - 1, ids[at]]) for at in range(first, last)]))


def unsound(scores: StageScores, model: LanguageModel, canaries: Sequence[Canary], column: str) -> list[str]:
    """Faults of a table of scores, in sentences; ``canaries`` are those of its rows, in order."""
    if len(scores.canaries) != len(canaries):
        return [f"{len(scores.canaries)} canaries were scored where {len(canaries)} were asked for"]
    faults = []
    for role in ("member", "control"):
        places = [place for place, canary in enumerate(canaries) if canary.role == role]
        values = scores.canaries[column].to_numpy(dtype=np.float64)
        # numpy's maximum, which a NaN does not get past.
        apart = float(np.max([abs(values[place] - plain_score(model, canaries[place])) for place in places[:CHECKED]]))
        if not apart <= nats_a_token(model):
            faults.append(f"scores of {role}s differ from plain forward passes by {apart:.2g} nats a token")
        different = len(np.unique(values[places].round(9)))
        if 2 * different < len(places):
            faults.append(f"only {different} different scores of {len(places)} {role}s")
    return faults
