"""Whether a model can be decoded in slots, found by trying: rows of several lengths, one that joins late, one that goes
back, each step compared with the model's own forward pass over the whole row."""

from __future__ import annotations

import inspect
import logging

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.checks.agreement import distance, is_full_precision, step_limit
from lm_audit.models.compat import is_stateful
from lm_audit.models.context import attention_reach, uniform_length
from lm_audit.models.generation.in_slots.slot_model import Part, SlotModel
from lm_audit.models.generation.in_slots.slots import key_shape
from lm_audit.models.scoring.limits import TRIED_WINDOW, is_out_of_memory

_LOG = logging.getLogger(__name__)
_TRIED_ON_A_GPU = 8192
"""Attention windows up to this length are tried on a GPU, where so long a text costs nothing."""
_LENGTH = 12


class Slots:
    """A model in slots, and the longest row for which that was proven; ``None``: any."""

    def __init__(self, model: SlotModel, longest: int | None):
        self.model, self.longest = model, longest


def find_slots(module: CausalModule, device: torch.device, *, proven: bool | None = None) -> Slots | None:
    """The model in slots, or ``None`` where its steps would not be its own; the log says why.

    ``proven`` is what a trial of the same model has found before. Raises what says that memory ran out, which is
    nothing that the trial has found.
    """
    reason = "it was tried before and does not agree with its own forward pass" if proven is False else None
    try:
        slots = _made(module, device) if reason is None else reason
        if isinstance(slots, Slots) and not proven:
            _try(slots.model, module, _tried_length(module, device))
    except Exception as error:  # whatever a model does with arguments that it was not written for
        if is_out_of_memory(error):
            raise
        slots = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if isinstance(slots, Slots):
        slots.model.release()
        return slots
    _LOG.info("%s is decoded by the plain loop: %s", type(module).__name__, slots)
    return None


def _made(module: CausalModule, device: torch.device) -> Slots | str:
    if is_stateful(module):
        return "its layers keep a state"
    ids = torch.ones(1, 2, dtype=torch.long, device=device)
    with torch.inference_mode():
        output = module(input_ids=ids, use_cache=True)
    shape = key_shape(getattr(output, "past_key_values", None) or getattr(output, "cache", None))
    if shape is None:
        return "its cache is not keys and values alone"
    model = SlotModel(module, device, shape)
    if not model.takes_positions:
        return "its body takes no positions"
    reach, turn = attention_reach(module.config), uniform_length(module.config)
    tried = reach is not None and reach < _tried_length(module, device)
    bounds = [bound for bound in (None if tried else reach, turn) if bound is not None]
    return Slots(model, min(bounds, default=None))


def _tried_length(module: CausalModule, device: torch.device) -> int:
    reach, turn = attention_reach(module.config), uniform_length(module.config)
    most = _TRIED_ON_A_GPU if device.type == "cuda" else TRIED_WINDOW
    longest = reach + 6 if reach is not None and reach <= most else _LENGTH
    return longest if turn is None else max(4, min(longest, turn - 4))


class _Disagrees(Exception):
    pass


@torch.inference_mode()
def _try(model: SlotModel, module: CausalModule, longest: int) -> None:
    """Raises ``_Disagrees`` where a logit is not the model's own."""
    size = int(module.get_input_embeddings().num_embeddings)
    generator = torch.Generator().manual_seed(20240229)
    rows = [torch.randint(0, size, (n + 4,), generator=generator).tolist() for n in (longest, max(2, longest // 3))]
    rows.append([*rows[0][: longest // 2], *rows[1]])
    model.allocate(4, max(map(len, rows)) + 2)
    truth = [_truth(module, row, model.device) for row in rows]
    lengths = [longest, max(2, longest // 3), longest // 2]
    first = model.read([Part(slot, 0, rows[slot][: lengths[slot]], 1) for slot in (0, 1)], 8 * longest, 64)
    _compare(module, first, [truth[slot][lengths[slot] - 1 :][:1] for slot in (0, 1)])
    _step(model, module, rows[:2], lengths[:2], truth)
    # The third row joins behind what it shares with the first, and both earlier rows go back by a token.
    model.cache.copy([0], [2], lengths[2])
    rest = rows[2][lengths[2] : lengths[2] + 2]
    (joined,) = model.read([Part(2, lengths[2], rest, 2)], 8 * longest, 64)
    _compare(module, [joined], [truth[2][lengths[2] : lengths[2] + 2]])
    lengths[2] += 2
    for _ in range(2):
        _step(model, module, rows, lengths, truth)
        lengths = [length + 1 for length in lengths]
    parts = [
        Part(slot, lengths[slot] - 1, row[lengths[slot] - 1 : lengths[slot] + 1], 1) for slot, row in enumerate(rows)
    ]
    _compare(module, model.read(parts, 8 * longest, 64), [truth[slot][lengths[slot] :][:1] for slot in range(3)])


def _step(
    model: SlotModel, module: CausalModule, rows: list[list[int]], lengths: list[int], truth: list[torch.Tensor]
) -> None:
    tokens = torch.tensor([row[n] for row, n in zip(rows, lengths, strict=True)], device=model.device)
    found = model.step(tokens, torch.tensor(lengths, device=model.device), min(model.cache.capacity, max(lengths) + 3))
    _compare(module, list(found[:, None]), [truth[slot][n : n + 1] for slot, n in enumerate(lengths)])


def _truth(module: CausalModule, row: list[int], device: torch.device) -> torch.Tensor:
    arguments = {"logits_to_keep": len(row)} if "logits_to_keep" in inspect.signature(module.forward).parameters else {}
    logits: torch.Tensor = module(input_ids=torch.tensor([row], device=device), use_cache=False, **arguments).logits[0]
    return logits.float()


def _compare(module: CausalModule, found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    full = is_full_precision(module)
    for one, other in zip(found, wanted, strict=True):
        worst = distance(one.log_softmax(-1) - other.log_softmax(-1), full=full)
        # A model that answers with NaN is named by the prompt.
        if worst == worst and worst > step_limit(full=full):
            raise _Disagrees(f"log-probabilities are off by {worst:.3g} nats")
