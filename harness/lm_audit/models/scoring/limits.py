"""How much is computed at once, by device, and how it shrinks when memory runs out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from lm_audit.models.causal_module import CausalModule

TRIED_WINDOW = 64
"""Attention windows up to this length are tried by the self-check, with sequences that fill them in a pack that is
longer; a pack for a model with a larger one never exceeds it."""

OVERSIZE = 1.1 * 1.25
"""How much larger than ``Limits.tokens`` a pass may be (:func:`lm_audit.models.scoring.packs.packing.batches`)."""

_LONG = 4096
"""Nodes at which a pack is cut wherever the cut repeats little, where long packs cost no more than short ones."""

UNKNOWN_BYTES = 4 * 2**30
"""Taken for free where nobody says how much is."""

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "failed to allocate")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a forward pass.

    ``soft`` nodes of a pack beyond which it is cut wherever the cut repeats little; ``hard`` nodes at which it is cut
    in any case; ``tokens`` of all packs of a pass; ``head_rows`` positions whose logits exist at once; ``carry`` shared
    tokens at a cut from which on cached keys and values are handed to the next pack (0 = never).
    """

    soft: int
    hard: int
    tokens: int
    head_rows: int
    carry: int = 32

    def uncached(self) -> Limits:
        """The same without handing on keys and values."""
        return replace(self, carry=0)

    def within(self, tokens: int | None) -> Limits:
        """Limits of which no pass of several texts reads more than ``tokens``; the same for ``None``."""
        if tokens is None:
            return self
        # Passes are made equal, and so up to OVERSIZE times as large as planned.
        planned = max(1, int(tokens / OVERSIZE))
        return replace(self, soft=min(self.soft, planned), hard=min(self.hard, planned), tokens=planned)

    def long(self) -> Limits:
        """The same with packs as long as a pass: for attention whose cost does not grow with what is not seen."""
        return replace(self, soft=min(_LONG, self.tokens), hard=self.tokens)

    def halved(self) -> Limits | None:
        """Limits for a second try after memory ran out; None when nothing is left to halve."""
        if self.tokens <= 1 and self.head_rows <= 1:
            return None
        half = {k: max(1, getattr(self, k) // 2) for k in ("soft", "hard", "tokens", "head_rows")}
        return replace(self, **half)


def device_limits(module: CausalModule, device: torch.device) -> Limits:
    """Limits that suit the device: cache-sized passes on a CPU, passes that fill the machine on a GPU."""
    vocabulary = module.get_input_embeddings().num_embeddings
    if device.type == "cpu":
        return Limits(soft=64, hard=512, tokens=320, head_rows=max(16, 2**23 // vocabulary))
    room = (free_on_gpu(device) if device.type == "cuda" else UNKNOWN_BYTES) // 4
    tokens = int(min(32768, max(1024, room // _bytes_per_token(module))))
    rows = int(min(2048, max(64, room // (16 * vocabulary))))
    return Limits(soft=256, hard=min(2048, tokens), tokens=tokens, head_rows=rows, carry=128)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the device has no memory left for what was asked."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


def free_on_gpu(device: torch.device) -> int:
    """Bytes that can be had: what the card has free, and what torch keeps for later and nobody uses."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _bytes_per_token(module: CausalModule) -> int:
    """A generous guess of what one position needs in a pass: some hidden and feed-forward vectors, and the mask."""
    config = module.config.get_text_config()
    hidden = int(getattr(config, "hidden_size", 1024))
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    return int(torch.finfo(module.dtype).bits // 8 * (12 * hidden + 4 * inner + 2048))
