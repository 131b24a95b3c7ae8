"""Scores straight from logits, for what the scoring engine does not give.

Two things need it: positions that hold the mean input embedding (which is no token), and the sum of the
log-probabilities over the whole vocabulary (for CLP). Logits exist only at the generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.passage.tokens import Passage
from lm_audit.shared.answers import next_call

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

BATCH_FLOATS = 64 * 2**20
"""Inputs and logits held at once."""

Row = tuple[NDArray[np.float64], NDArray[np.float64]]
Rows = list[Row]


def direct_scores(
    model: LanguageModel,
    passage: Passage,
    keys: Sequence[tuple[frozenset[int], int]],
    replacement: Sequence[int] | None,
) -> Rows:
    """Log-probability of each generation token from each key's start on, and the vocabulary's mean log-probability.

    ``replacement`` is the token id that overwrites each position, ``None`` for the mean input embedding. Rows are kept
    as they are computed (:mod:`lm_audit.shared.answers`).
    """
    call = next_call("direct scores", passage.ids, len(passage.generation_ids), replacement)
    found: dict[int, Row] = {}
    if call is not None:
        for index, key in enumerate(keys):
            kept = call.known(*_request(key))
            if kept is not None:
                found[index] = (np.array(kept[0]), np.array(kept[1]))
    left = [index for index in range(len(keys)) if index not in found]
    done = 0
    for rows in _batches(model, passage, [keys[index] for index in left], replacement):
        part = dict(zip(left[done : done + len(rows)], rows, strict=True))
        done += len(rows)
        found |= part
        if call is not None:
            answers = [(_request(keys[index]), [one.tolist() for one in row]) for index, row in part.items()]
            call.add(answers)
    return [found[index] for index in range(len(keys))]


def _request(key: tuple[frozenset[int], int]) -> tuple[bytes]:
    return (repr((sorted(key[0]), key[1])).encode(),)


@torch.no_grad()
def _batches(
    model: LanguageModel,
    passage: Passage,
    keys: Sequence[tuple[frozenset[int], int]],
    replacement: Sequence[int] | None,
) -> Iterator[Rows]:
    """The rows of so many keys as memory holds at once, and then of the next."""
    if not keys:
        return
    embedding = model.module.get_input_embeddings()
    ids = torch.tensor(passage.ids, device=model.device)
    plain = embedding(ids)
    other = (
        _mean_rows(embedding.weight, len(ids)) if replacement is None else embedding(torch.tensor(replacement).to(ids))
    )
    generated = len(passage.generation_ids)
    floats = len(ids) * embedding.weight.shape[1] + (generated + 1) * embedding.weight.shape[0]
    size = max(1, BATCH_FLOATS // floats)
    for start in range(0, len(keys), size):
        part = keys[start : start + size]
        inputs = plain.expand(len(part), -1, -1).clone()
        for row, (positions, _) in enumerate(part):
            inputs[row, sorted(positions)] = other[sorted(positions)]
        logits = (
            model.module(inputs_embeds=inputs, use_cache=False, logits_to_keep=generated + 1).logits[:, :-1].float()
        )
        logits = logits.log_softmax(-1)
        scores = logits.gather(-1, ids[-generated:].expand(len(part), -1)[..., None])[..., 0].double().cpu().numpy()
        means = logits.mean(-1).double().cpu().numpy()
        yield [(scores[row, first:], means[row, first:]) for row, (_, first) in enumerate(part)]


def _mean_rows(weight: torch.Tensor, length: int) -> torch.Tensor:
    return weight.float().mean(0).to(weight.dtype).expand(length, -1)
