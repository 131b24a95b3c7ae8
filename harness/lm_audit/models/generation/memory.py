"""How many rows are decoded at once: as many as memory holds, in groups of like length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.scoring.limits import UNKNOWN_BYTES, device_limits, free_on_gpu
from lm_audit.shared.free_memory import available_memory

_CACHE_SHARE = 0.6
"""Of the memory that is free on a GPU, for keys and values; the rest is for what a pass needs."""
_CPU_SHARE = 0.25
_LOGITS = 24
"""Bytes a logit of every row needs: in float32, in float64 and their sums where tokens are drawn."""
_SPARE_COLUMNS = 16_384
"""So many columns may stay empty before rows of other lengths are decoded apart."""
_CPU_TOKENS = 1024


@dataclass(frozen=True)
class Budget:
    """Sizes of a pass: ``tokens`` read at once, ``head_rows`` whose logits are computed at once, and the ``worth`` in
    tokens of a pass of its own."""

    tokens: int
    head_rows: int
    worth: int


@dataclass(frozen=True)
class Group:
    """Prompts that are decoded together, and the columns that each one's slot needs."""

    indices: tuple[int, ...]
    capacity: int
    slots: int


def budget(module: CausalModule, device: torch.device, batch_tokens: int | None = None) -> Budget:
    """Sizes that suit the device; not more than ``batch_tokens`` at once where that is given."""
    limits = device_limits(module, device)
    tokens, worth = (_CPU_TOKENS, 32) if device.type == "cpu" else (limits.tokens, 512)
    return Budget(tokens if batch_tokens is None else min(tokens, batch_tokens), limits.head_rows, worth)


def groups(needs: Sequence[tuple[int, int]], token_bytes: int, vocabulary: int, free: int) -> list[Group]:
    """(prompt, columns) in groups, the longest first, each with as many slots as ``free`` bytes hold."""
    order = sorted(needs, key=lambda need: -need[1])
    parts: list[list[tuple[int, int]]] = []
    for need in order:
        if parts and not _wasteful(parts[-1], need):
            parts[-1].append(need)
        else:
            parts.append([need])
    made = []
    for part in parts:
        capacity = max(1, part[0][1])
        slots = free // ((capacity + 1) * token_bytes + _LOGITS * vocabulary)
        made.append(Group(tuple(index for index, _ in part), capacity, max(1, min(len(part), slots))))
    return made


def _wasteful(part: Sequence[tuple[int, int]], need: tuple[int, int]) -> bool:
    """Whether a row of this length leaves most of its slot empty, in a group that is not small."""
    longest = part[0][1]
    return 2 * need[1] < longest and longest * len(part) > _SPARE_COLUMNS


def free_bytes(device: torch.device) -> int:
    """Bytes of the device that rows may take."""
    if device.type == "cuda":
        return int(_CACHE_SHARE * free_on_gpu(device))
    told = available_memory() if device.type == "cpu" else None
    return int(_CPU_SHARE * (UNKNOWN_BYTES if told is None else told))
