"""Log-probabilities by plain forward passes of the model's own module: what controls hold the audit's numbers against.

Nothing of the scoring engine is used here: each text is tokenised whole, run through ``module(input_ids)`` without
cache, packing or shared prefixes, and read off a float64 log-softmax. It is slow, and meant for a few hundred texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
BATCH = 16


def plain_texts(model: LanguageModel, pairs: Sequence[tuple[str, str]]) -> list[Floats]:
    """Log-probabilities (nats) of the tokens of each second text after the first.

    Texts are tokenised joined, with what the tokenizer itself puts at the start of a text (its BOS).
    """
    from lm_audit.models.text import text_ids

    sequences, starts = [], []
    heads = {prefix: text_ids.prompt_ids(model.tokenizer, prefix) for prefix in dict.fromkeys(p for p, _ in pairs)}
    for prefix, target in pairs:
        whole, head = text_ids.prompt_ids(model.tokenizer, prefix + target), heads[prefix]
        common = 0
        while common < min(len(head), len(whole)) and head[common] == whole[common]:
            common += 1
        sequences.append(whole)
        starts.append(common)
    return plain_ids(model, sequences, starts)


def plain_ids(model: LanguageModel, sequences: Sequence[Sequence[int]], starts: Sequence[int]) -> list[Floats]:
    """Log-probabilities (nats, float64) of the tokens of each sequence from its start on, given all before them."""
    import torch

    found: dict[int, Floats] = {}
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        longest = max(len(sequences[i]) for i in chosen)
        # Whatever fills the right side comes after every token that is read, so that no mask is needed.
        rows = [[*sequences[i], *[sequences[i][-1]] * (longest - len(sequences[i]))] for i in chosen]
        with torch.no_grad():
            logits = model.module(input_ids=torch.tensor(rows, device=model.device), use_cache=False).logits
        for place, i in enumerate(chosen):
            at = range(starts[i], len(sequences[i]))
            told = logits[place, [t - 1 for t in at]].double().log_softmax(dim=-1).cpu()
            found[i] = np.array([float(told[k, sequences[i][t]]) for k, t in enumerate(at)], dtype=np.float64)
    return [found[i] for i in range(len(sequences))]
