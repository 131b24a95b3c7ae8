"""The table of a decoding loop: the work, the rows that have a seat, and the steps that are under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from lm_audit.models.generation.sampling import Picker
from lm_audit.models.generation.stopping import Continuation

NOT_A_NUMBER = -1
"""Stands for the token of a row whose logits hold NaN."""


class Overflow(Exception):
    """A row needs more columns than were planned; it is to be continued another way."""


class NotANumber(Exception):
    """The model answered a prompt (by its index) with NaN."""

    def __init__(self, index: int):
        super().__init__(index)
        self.index = index


@dataclass(frozen=True)
class Work:
    """What is asked: prompts, how each one's continuation begins, what to do with it.

    ``target`` are ids whose logits are wanted in the answer's place, given to ``scored`` as a table [ids, vocabulary];
    ``enough`` may end a row after a token; ``done`` takes a row at its end.
    """

    prompts: Sequence[Sequence[int]]
    begin: Callable[[int], Continuation]
    picker: Picker
    done: Callable[[int, Continuation], None]
    enough: Callable[[int, Continuation], bool] | None = None
    targets: Sequence[Sequence[int]] | None = None
    scored: Callable[[int, torch.Tensor], None] | None = None


@dataclass(eq=False)
class Seat:
    """A row in a slot. ``age`` changes when what was computed ahead for it no longer counts."""

    index: int
    row: Continuation
    prompt: Sequence[int]
    age: int = 0
    ahead: int = 0
    chosen: int = 0

    @property
    def length(self) -> int:
        """Tokens that its slot holds before the newest one is read."""
        return len(self.prompt) + self.chosen - 1


@dataclass
class Launch:
    """A step under way: whose it is, and its tokens, which may not have arrived yet."""

    seats: list[tuple[int, Seat, int]]
    tokens: torch.Tensor
    arrived: Any


@dataclass
class Table:
    """Seats by slot; a slot that was left keeps the prompt that it held, for those that begin alike."""

    seats: list[Seat | None] = field(default_factory=list)
    prompts: list[Sequence[int]] = field(default_factory=list)

    @classmethod
    def of(cls, slots: int) -> Table:
        """``slots`` empty ones."""
        return cls([None] * slots, [()] * slots)

    @property
    def taken(self) -> list[int]:
        return [slot for slot, seat in enumerate(self.seats) if seat is not None]

    @property
    def free(self) -> list[int]:
        return [slot for slot, seat in enumerate(self.seats) if seat is None]


def runs_beside(device: torch.device) -> bool:
    """Whether the device works while this thread takes tokens in: then it is always a step ahead."""
    return device.type == "cuda"
