"""Scores once more, by plain forward passes over one text after the other: what the scoring engine must agree with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


def largest_difference(model: LanguageModel, rows: Sequence[Mapping[str, Any]]) -> float:
    """The largest difference (nats) of the rows' ``suffix_logprob`` from that of a plain pass over prefix and suffix.

    Infinite where a row's ``predicted_id`` is not the token that the plain pass finds likeliest. For tokenizers of
    bytes, in which the suffix is the text's last ``suffix_bytes`` tokens wherever it was cut.
    """
    import torch

    from lm_audit.models.scoring.requests import default_bos

    apart = 0.0
    with torch.no_grad():
        for row in rows:
            text, size = row["prefix"] + row["suffix"], int(row["suffix_bytes"])
            ids = [*default_bos(model.tokenizer), *model.tokenizer(text, add_special_tokens=False)["input_ids"]]
            logits = model.module(torch.tensor([ids], device=model.module.device)).logits[0].double()
            logprobs = logits.log_softmax(dim=-1)
            found = sum(float(logprobs[place - 1, ids[place]]) for place in range(len(ids) - size, len(ids)))
            best = int(logits[len(ids) - size - 1].argmax())
            lead = float(logits[len(ids) - size - 1].max() - logits[len(ids) - size - 1, int(row["predicted_id"])])
            apart = max(apart, abs(found - float(row["suffix_logprob"])))
            if best != int(row["predicted_id"]) and lead > 1e-3:
                return float("inf")
    return apart if np.isfinite(apart) else float("inf")
