"""Scores of passages whose overwritten positions hold the mean input embedding of the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from harness.audits.faithfulness.passage import Passage

if TYPE_CHECKING:
    from harness.models.language_model import LanguageModel

BATCH_FLOATS = 64 * 2**20
"""Logits of the generation held at once."""


@torch.no_grad()
def mean_scores(
    model: LanguageModel, passage: Passage, keys: Sequence[tuple[frozenset[int], int]]
) -> list[NDArray[np.float64]]:
    """Log-probabilities of the generation tokens from each key's start on, batched; logits only at the generation."""
    embedding = model.module.get_input_embeddings()
    ids = torch.tensor(passage.ids, device=model.device)
    plain, mean = embedding(ids), embedding.weight.float().mean(0).to(embedding.weight.dtype)
    generated = len(passage.generation_ids)
    batch = max(1, BATCH_FLOATS // (len(ids) * embedding.weight.shape[-1] + (generated + 1) * embedding.weight.shape[0]))
    results: list[NDArray[np.float64]] = []
    for start in range(0, len(keys), batch):
        part = keys[start : start + batch]
        inputs = plain.expand(len(part), -1, -1).clone()
        for row, (positions, _) in enumerate(part):
            inputs[row, sorted(positions)] = mean
        logits = model.module(inputs_embeds=inputs, use_cache=False, logits_to_keep=generated + 1).logits[:, :-1].float()
        scores = logits.log_softmax(-1).gather(-1, ids[-generated:].expand(len(part), -1)[..., None])[..., 0]
        rows = scores.double().cpu().numpy()
        results += [row[first:] for row, (_, first) in zip(rows, part, strict=True)]
    return results
