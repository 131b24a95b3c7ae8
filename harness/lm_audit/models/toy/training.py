"""A short training loop for toy models: AdamW, linear warm-up, linear decay, clipped gradients, one thread.

The pieces (optimiser, schedule, batches, step) serve other objectives too. On CPU, same seed, same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import torch
from torch.nn import functional

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule

_IGNORED = -100


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. The learning rate rises over ``warmup_steps``, then falls linearly to ``final_share`` of ``lr``."""

    epochs: int
    lr: float
    batch_size: int = 32
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    warmup_steps: int = 20
    final_share: float = 0.1
    clip: float = 1.0

    def steps(self, rows: int) -> int:
        """Optimiser steps for ``rows`` training rows."""
        return self.epochs * ceil(rows / self.batch_size)


class Trainer:
    """Optimiser and schedule of one run; :meth:`step` takes a loss and updates the module's parameters.

    ``constant`` keeps the learning rate after the warm-up, for runs whose last step is not known.
    """

    def __init__(self, module: CausalModule, settings: TrainingSettings, total_steps: int, *, constant: bool = False):
        self._module = module
        self._settings = settings
        self._optimiser = torch.optim.AdamW(
            module.parameters(), lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser, lr_factor(replace(settings, final_share=1.0) if constant else settings, total_steps)
        )
        self.steps = 0
        self.losses: list[float] = []

    def step(self, loss: torch.Tensor) -> None:
        """One update; ``ModelError`` naming the step where the loss is NaN or infinite."""
        value = float(loss.detach())
        if not np.isfinite(value):
            raise ModelError(f"training stopped at step {self.steps}: the loss is {value}; try a lower learning rate")
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._module.parameters(), self._settings.clip)
        self._optimiser.step()
        self._schedule.step()
        self.steps += 1
        self.losses.append(value)


def lr_factor(settings: TrainingSettings, total_steps: int) -> Callable[[int], float]:
    """Share of the learning rate by step: rising over the warm-up, then falling to ``final_share`` at the end."""
    warmup, final = settings.warmup_steps, settings.final_share

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        left = (total_steps - step) / max(1, total_steps - warmup)
        return final + (1 - final) * max(0.0, left)

    return factor


def shuffled_batches(
    rows: int, settings: TrainingSettings, seed: int | np.random.SeedSequence, *, epochs: int | None = None
) -> Iterator[list[int]]:
    """Row numbers of each batch, every epoch in an order of its own; ``epochs`` overrules the settings'."""
    rng = np.random.default_rng(seed)
    for _ in range(settings.epochs if epochs is None else epochs):
        order = rng.permutation(rows).tolist()
        for start in range(0, rows, settings.batch_size):
            yield order[start : start + settings.batch_size]


def pad_rows(rows: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids padded on the right to one length, and the mask that is 1 on tokens: both [rows, longest]."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask


def next_token_loss(module: CausalModule, rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    """Mean cross-entropy (nats a token) of every token but each row's first."""
    ids, mask = pad_rows(rows, pad, module.device)
    logits = module(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
    targets = ids[:, 1:].masked_fill(mask[:, 1:] == 0, _IGNORED)
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=_IGNORED)


def train_on_rows(
    module: CausalModule, rows: Sequence[Sequence[int]], settings: TrainingSettings, *, seed: int, pad: int
) -> list[float]:
    """Train ``module`` in place to predict the next token of each row; the loss (nats a token) of every step."""
    trainer = Trainer(module, settings, settings.steps(len(rows)))
    with one_thread(), training_mode(module):
        for batch in shuffled_batches(len(rows), settings, seed):
            trainer.step(next_token_loss(module, [rows[index] for index in batch], pad))
    return trainer.losses


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread while the block runs: sums over threads are what differs from run to run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def training_mode(module: CausalModule) -> Iterator[None]:
    """Gradients and dropout on while the block runs, off afterwards."""
    module.train().requires_grad_(True)
    try:
        with torch.enable_grad():
            yield
    finally:
        module.eval().requires_grad_(False)
        module.zero_grad(set_to_none=True)
