"""How a model's rows can be continued token by token: together with padding, in equal lengths, or read whole each time.

Found by trying, as the scoring engine does: a few random rows are continued each way and compared with the model's own
forward pass over the whole row. Models whose layers keep a state (linear attention, convolutions) are never padded:
padding that a short trial bears may pass a block's border in a long text.
"""

from __future__ import annotations

import inspect
from enum import Enum

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.checks.agreement import distance, is_full_precision, step_limit
from lm_audit.models.compat import is_stateful, key_layers
from lm_audit.models.context import attention_reach
from lm_audit.models.generation.decoding import StepModel

_STEPS = 3
_SHORTEST, _LONGEST = 6, 2048
"""Windows that the first trial does not outgrow, and that a trial can outgrow at a bearable price."""


class Stepping(Enum):
    """Ways to continue several rows, fastest first."""

    PADDED = "rows of any length together, padded on the left"
    EQUAL = "rows of one length together"
    WHOLE = "each row read whole at every step"


@torch.inference_mode()
def find_stepping(module: CausalModule, device: torch.device) -> Stepping:
    """The fastest way that gives what the model's own forward gives."""
    accepts = inspect.signature(module.forward).parameters
    takes_cache = bool({"cache", "past_key_values"} & set(accepts)) and "attention_mask" in accepts
    if is_stateful(module) or not takes_cache:
        return Stepping.WHOLE
    training = module.training
    module.eval()
    try:
        if not _answers(module, device):
            return Stepping.PADDED  # there is no plain forward pass to compare with
        if _keeps_keys_only(module, device) and _agrees(module, device, (9, 4, 6)):
            return Stepping.PADDED
        agrees = _agrees(module, device, (7, 7)) and _agrees_beyond_its_window(module, device)
        return Stepping.EQUAL if agrees else Stepping.WHOLE
    finally:
        module.train(training)


def _answers(module: CausalModule, device: torch.device) -> bool:
    try:
        module(input_ids=torch.ones(1, 2, dtype=torch.long, device=device), use_cache=False)
    except Exception:  # a checkpoint's own code may insist on arguments
        return False
    return True


def _keeps_keys_only(module: CausalModule, device: torch.device) -> bool:
    """Whether each layer's cache is keys and values, all of them or those of a window."""
    try:
        output = module(input_ids=torch.ones(1, 2, dtype=torch.long, device=device), use_cache=True)
    except Exception:  # whatever a model does with a cache that is not made for it
        return False
    cache = getattr(output, "past_key_values", None) or getattr(output, "cache", None)
    return bool(key_layers(cache, windows=True))


def _agrees_beyond_its_window(module: CausalModule, device: torch.device) -> bool:
    """The same for a row that outgrows an attention window: caches beside keys alone do not all know their length."""
    reach = attention_reach(module.config)
    return reach is None or not _SHORTEST < reach <= _LONGEST or _agrees(module, device, (reach - 1,))


def _agrees(module: CausalModule, device: torch.device, lengths: tuple[int, ...]) -> bool:
    """Whether rows of these lengths get the same log-probabilities together, step by step, as each by itself."""
    size = int(module.get_input_embeddings().num_embeddings)
    generator = torch.Generator().manual_seed(20240229)
    rows = [torch.randint(0, size, (n + _STEPS,), generator=generator).tolist() for n in lengths]
    full = is_full_precision(module)
    try:
        steps = StepModel(module, device, [row[:n] for row, n in zip(rows, lengths, strict=True)])
        worst = 0.0
        for step in range(_STEPS):
            together = steps.next_logits().log_softmax(-1)
            for place, (row, n) in enumerate(zip(rows, lengths, strict=True)):
                whole = module(input_ids=torch.tensor([row[: n + step]], device=device), use_cache=False)
                off = together[place] - whole.logits[0, -1].float().log_softmax(-1)
                worst = max(worst, distance(off, full=full))
            if step < _STEPS - 1:
                steps.feed([row[n + step] for row, n in zip(rows, lengths, strict=True)], range(len(rows)))
    except Exception:  # whatever a model does with arguments that it was not written for
        return False
    # A model that answers with NaN is named by the prompt; any way will do.
    return worst != worst or worst <= step_limit(full=full)
