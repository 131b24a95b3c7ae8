"""Prompts through the slots of a model: as many rows as memory holds, fewer where it turns out to hold fewer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from lm_audit.errors import ModelError
from lm_audit.models.generation.in_slots.seats import Loop
from lm_audit.models.generation.in_slots.slot_check import Slots
from lm_audit.models.generation.in_slots.table import NotANumber, Overflow, Work
from lm_audit.models.generation.memory import Group, budget, free_bytes, groups
from lm_audit.models.generation.stopping import Continuation
from lm_audit.models.kernels.packed_weights import packed
from lm_audit.models.loading.evaluating import evaluating
from lm_audit.models.scoring.limits import is_out_of_memory

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

_LOG = logging.getLogger(__name__)


def decode_in_slots(model: LanguageModel, work: Work, needs: Sequence[int], leave_out: Iterable[int] = ()) -> list[int]:
    """Continue every prompt that the model can continue in slots; the indices of the others, for the plain loop.

    Neither holds those to ``leave_out``.

    ``needs`` are the tokens that each prompt may come to, its continuation and target included. Raises ``ModelError``
    for NaN, and where memory does not hold one row.
    """
    out = set(leave_out)
    asked = [(index, need) for index, need in enumerate(needs) if index not in out]
    slots = model.slots if asked else None
    if slots is None:
        return [index for index, _ in asked]
    left = [index for index, need in asked if slots.longest is not None and need > slots.longest]
    if left:
        _LOG.info(
            "%s: %d of %d prompts are decoded by the plain loop: with their continuation they may be longer than the "
            "%s tokens up to which the attention window and the rotation of this model are those of a short text",
            model.name,
            len(left),
            len(asked),
            slots.longest,
        )
    wanted = [(index, need) for index, need in asked if slots.longest is None or need <= slots.longest]
    size = int(model.module.get_input_embeddings().num_embeddings)
    free = free_bytes(model.device)
    try:
        with evaluating(model.module), packed(model.module, sum(need for _, need in wanted), model.packed_weights):
            for group in groups(wanted, slots.model.shape.token_bytes, size, free):
                left += _run(model, slots, work, group)
    finally:
        slots.model.release()
    return sorted(left)


def _run(model: LanguageModel, slots: Slots, work: Work, group: Group) -> list[int]:
    """Decode a group; what is left of it for the plain loop."""
    done: set[int] = set()

    def finish(index: int, row: Continuation) -> None:
        done.add(index)
        work.done(index, row)

    noting = replace(work, done=finish)
    rows = group.slots
    while True:
        todo = [index for index in group.indices if index not in done]
        try:
            sizes = budget(model.module, model.device, model.batch_tokens)
            loop = Loop(slots.model, noting, sizes, slots=rows, capacity=group.capacity)
            loop.run(todo)
            return []
        except Overflow:
            return [index for index in todo if index not in done]
        except NotANumber as error:
            raise ModelError(f"model {model.name} answered prompt {error.index} with NaN") from None
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if rows == 1:
                index = next(index for index in todo if index not in done)
                raise ModelError(f"model {model.name}: no memory for prompt {index} alone") from error
        slots.model.release()
        if model.device.type == "cuda":
            torch.cuda.empty_cache()
        rows = max(1, rows // 2)
