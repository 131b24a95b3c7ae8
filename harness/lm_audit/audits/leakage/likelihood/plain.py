"""Scores once more, by plain forward passes over one text after the other: what the scoring engine must agree with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.half_option.prefixes import half_option_prefixes
from lm_audit.audits.leakage.items.item import Item
from lm_audit.models.checks.agreement import is_full_precision

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

PENALTY = 1.05
"""Of the published test, on every token that stands in the prefix."""


def near_tie(model: LanguageModel) -> float:
    """Logits this close may change places from one kernel to another: in half precision a step or two."""
    return 1e-3 if is_full_precision(model) else 0.25


def agreement(model: LanguageModel) -> float:
    """Nats by which the log-likelihood of half an option may differ from a plain pass at the model's precision.

    Fifty times what float32 does, some six times what bfloat16 does on the toy; a byte that is left out or read at
    another place is more in text that the model does not know by heart.
    """
    return 0.01 if is_full_precision(model) else 1.0


def largest_difference(model: LanguageModel, rows: Sequence[Mapping[str, Any]]) -> float:
    """The largest difference (nats) of the rows' ``suffix_logprob`` from that of a plain pass over prefix and suffix.

    Infinite where a row's ``predicted_id`` is not the token that the plain pass finds likeliest, and where a
    ``suffix_logprob`` is no number. For tokenizers of bytes, in which the suffix is the text's last ``suffix_bytes``
    tokens wherever it was cut.
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
            apart = float(np.maximum(apart, abs(found - float(row["suffix_logprob"]))))
            if best != int(row["predicted_id"]) and lead > near_tie(model):
                return float("inf")
    return apart if np.isfinite(apart) else float("inf")


def published_guesses(model: LanguageModel, item: Item) -> list[tuple[set[str], str]]:
    """For each option what the published test must find next by a plain pass, and the second half that is there.

    Several texts where tokens are as likely as each other, to :func:`near_tie`.
    """
    import torch

    from lm_audit.models.scoring.requests import default_bos

    found = []
    with torch.no_grad():
        for prefix, suffix in half_option_prefixes(item.question, item.options):
            ids = [*default_bos(model.tokenizer), *model.tokenizer(prefix, add_special_tokens=False)["input_ids"]]
            logits = model.module(torch.tensor([ids], device=model.module.device)).logits[0, -1].double().cpu().numpy()
            for token in set(ids):
                logits[token] *= PENALTY if logits[token] < 0 else 1 / PENALTY
            likeliest = np.flatnonzero(logits >= logits.max() - near_tie(model))
            found.append(({model.tokenizer.decode([int(token)]) for token in likeliest}, suffix))
    return found
