"""SFT and DPO once more, by other code: plain forward passes of rows of one length, in float64, and AdamW written out.

For tokenizers of bytes, and for stages whose batches are all rows at once, so that their order does not matter.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.models.text.byte_tokenizer import BOS, EOS, FIRST_BYTE

if TYPE_CHECKING:
    import torch

    from lm_audit.audits.privacy.stages.config import TrainSettings
    from lm_audit.models.causal_module import CausalModule

TINY = 1e-8
"""What AdamW adds to a root of its second moment."""

Text = tuple[str, str]
"""What stands before, and what is scored."""


def double(module: CausalModule) -> CausalModule:
    """A copy in float64 whose weights may change."""
    import torch

    made = copy.deepcopy(module).to(torch.device("cpu"), torch.float64)
    return made.eval().requires_grad_(True)


def logprobs(module: CausalModule, texts: Sequence[Text]) -> torch.Tensor:
    """Of each text the sum of its tokens' log-probabilities, its end among them, in nats."""
    import torch

    rows = [[BOS, *(FIRST_BYTE + byte for byte in (head + tail).encode()), EOS] for head, tail in texts]
    starts = [1 + len(head.encode()) for head, _ in texts]
    found: dict[int, torch.Tensor] = {}
    for length in sorted({len(row) for row in rows}):
        places = [place for place, row in enumerate(rows) if len(row) == length]
        ids = torch.tensor([rows[place] for place in places], device=module.device)
        each = module(ids).logits[:, :-1].log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]
        for number, place in enumerate(places):
            found[place] = each[number, starts[place] - 1 :].sum()
    return torch.stack([found[place] for place in range(len(rows))])


def plain_sft(module: CausalModule, texts: Sequence[str], settings: TrainSettings) -> list[float]:
    """Train in place; the mean negative log-likelihood of all tokens after BOS, before each step."""
    tokens = sum(len(text.encode()) + 1 for text in texts)
    whole = [("", text) for text in texts]
    return _trained(module, lambda: -logprobs(module, whole).sum() / tokens, settings)


def plain_dpo(
    module: CausalModule, pairs: Sequence[Mapping[str, Any]], settings: TrainSettings, beta: float
) -> list[float]:
    """Train in place against the module as it came: the mean of log(1 + exp(-beta (margin - its margin)))."""
    import torch

    chosen, rejected = ([(pair["prompt"], pair[side]) for pair in pairs] for side in ("chosen", "rejected"))
    with torch.no_grad():
        before = logprobs(module, chosen) - logprobs(module, rejected)

    def loss() -> torch.Tensor:
        gain = logprobs(module, chosen) - logprobs(module, rejected) - before
        return torch.log1p(torch.exp(-beta * gain)).mean()

    return _trained(module, loss, settings)


def _trained(module: CausalModule, loss: Callable[[], torch.Tensor], settings: TrainSettings) -> list[float]:
    import torch

    weights = [weight for weight in module.parameters() if weight.requires_grad]

    def slopes() -> tuple[float, Sequence[torch.Tensor]]:
        value = loss()
        return float(value.detach()), torch.autograd.grad(value, weights)

    return descend(weights, slopes, settings)


def descend(
    weights: Sequence[torch.Tensor],
    slopes: Callable[[], tuple[float, Sequence[torch.Tensor]]],
    settings: TrainSettings,
) -> list[float]:
    """AdamW on ``weights`` in place, as many steps as ``settings`` has epochs; the loss before each step.

    ``slopes`` gives the loss and its gradient, one tensor a weight.
    """
    import torch

    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    (slow, slower), losses = settings.betas, list[float]()
    for step in range(settings.epochs):
        with torch.enable_grad():
            value, found = slopes()
        losses.append(value)
        size = math.sqrt(sum(float((slope**2).sum()) for slope in found))
        rate = settings.lr * _rate(settings, step)
        with torch.no_grad():
            for weight, slope, one, two in zip(weights, found, first, second, strict=True):
                cut = slope * min(1.0, settings.clip / (size + 1e-6))
                one.mul_(slow).add_((1 - slow) * cut)
                two.mul_(slower).add_((1 - slower) * cut**2)
                root = (two / (1 - slower ** (step + 1))).sqrt() + TINY
                weight.sub_(rate * one / (1 - slow ** (step + 1)) / root)
    return losses


def _rate(settings: TrainSettings, step: int) -> float:
    """Share of the learning rate: up in even steps, then down in even steps to the last share."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    down = (step - settings.warmup_steps) / (settings.epochs - settings.warmup_steps)
    return 1 - (1 - settings.final_share) * down
