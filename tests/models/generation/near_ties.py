"""Where two greedy texts of a half-precision model part: how near the two tokens' logits are, in steps of the dtype.

Both texts are greedy, so that at the first difference each of two computations found its own token the larger. Equal
logits, or neighbours among the dtype's numbers, are a near-tie; any other gap is more than the rounding of a logit.
What is right is said by the same weights in float32 over the same beginning.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lm_audit.models.generation.sampling import Picker


@dataclass(frozen=True)
class Parting:
    """The first difference of two texts: gaps of the two tokens' logits by ours, theirs and float32, in steps of the
    dtype at the size of these logits; ``off`` and ``their_off`` are root mean squares over the vocabulary of what ours
    and theirs differ from float32.
    """

    place: int
    ours: float
    theirs: float
    exact: float
    off: float
    their_off: float

    @property
    def near_tie(self) -> bool:
        """Whether the two logits are equal, or next to each other in the dtype, in one of the two computations."""
        return min(self.ours, self.theirs) <= 1.0


def step_at(value: float, dtype: torch.dtype) -> float:
    """The distance of neighbouring numbers of a dtype at a value: 2**-7 for bfloat16 from 1 to 2."""
    return float(torch.finfo(dtype).eps) * 2.0 ** math.floor(math.log2(max(abs(value), torch.finfo(dtype).tiny)))


def parting(
    module: Any, prompt: Sequence[int], ours: Sequence[int], theirs: Sequence[int], logits: tuple[Tensor, Tensor]
) -> Parting:
    """How two texts part; ``logits`` are ours and theirs [tokens, vocabulary], the ids end with what ended them."""
    place = next(place for place, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
    pair = [ours[place], theirs[place]]
    with torch.no_grad():
        row = torch.tensor([[*prompt, *theirs[:place]]], device=module.device)
        exact = copy.deepcopy(module).float()(input_ids=row, use_cache=False).logits[0, -1]
    own, other = (table[place].float().to(exact.device) for table in logits)
    step = step_at(float(exact[pair].abs().max()), module.dtype)
    gaps = [abs(float(one[pair[0]] - one[pair[1]])) / step for one in (own, other, exact)]
    return Parting(place, *gaps, *(float((one - exact).square().mean().sqrt()) / step for one in (own, other)))


@contextmanager
def kept_logits() -> Iterator[dict[tuple[int, int], Tensor]]:
    """The logits that ``generate`` chooses from while the context lasts, by prompt and token."""
    kept: dict[tuple[int, int], Tensor] = {}
    plain = Picker.choose

    def choose(self: Picker, logits: Tensor, rows: Sequence[tuple[int, int] | None]) -> Tensor:
        kept.update({row: logits[place].clone() for place, row in enumerate(rows) if row is not None})
        return plain(self, logits, rows)

    Picker.choose = choose  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        Picker.choose = plain  # type: ignore[method-assign]


@torch.no_grad()
def their_text(module: Any, prompt: Sequence[int], new: int) -> tuple[list[int], Tensor]:
    """What transformers' ``generate`` writes, and the logits [tokens, vocabulary] that it chose from."""
    row = torch.tensor([list(prompt)], device=module.device)
    found = module.generate(
        row,
        attention_mask=torch.ones_like(row),
        max_new_tokens=new,
        do_sample=False,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return found.sequences[0, len(prompt) :].tolist(), torch.stack([one[0] for one in found.logits])


def partings(model: Any, prompts: Sequence[Sequence[int]], new: int, end: int) -> list[Parting]:
    """Every first difference of ``model.generate`` to transformers' own, prompt by prompt; ``end`` is the EOS."""
    found = []
    with kept_logits() as kept:
        texts = [list(one.token_ids) for one in model.generate(prompts, max_new_tokens=new)]
    for index, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
        want, table = their_text(model.module, prompt, new)
        want = want[: want.index(end)] if end in want else want
        if text != want:
            own = torch.stack([kept[index, place] for place in range(min(len(text) + 1, new))])
            found.append(parting(model.module, prompt, [*text, end], [*want, end], (own, table)))
    return found
