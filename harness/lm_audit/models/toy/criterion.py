"""Training until a measured criterion holds, since a fixed number of steps ends elsewhere on another processor.

The last bit of a matrix product differs between processors and thread counts, and training magnifies it. What must be
true of a planted model is therefore measured while it trains, on rows that it does not train on where that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.toy.training import (
    Trainer,
    TrainingSettings,
    next_token_loss,
    one_thread,
    pad_rows,
    shuffled_batches,
    training_mode,
)

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Criterion:
    """What training is for: ``measure(module)`` must be ``least`` or more at ``checks`` checks in a row.

    A check follows every ``every`` steps, in evaluation mode and without gradients; ``what`` names the measure in
    messages. More than ``cap`` steps are an error, never a model that is almost good enough.
    """

    what: str
    measure: Callable[[Any], float]
    least: float
    every: int = 25
    checks: int = 3
    cap: int = 4000

    def __post_init__(self) -> None:
        if min(self.every, self.checks) < 1 or self.cap < self.every * self.checks:
            raise UsageError(
                f"a criterion checked every {self.every} steps, {self.checks} times in a row, cannot hold within "
                f"{self.cap} steps; expected positive numbers and a cap of {self.every * self.checks} or more"
            )
        if not np.isfinite(self.least):
            raise UsageError(f"criterion {self.what!r}: the least value is {self.least}; expected a finite number")


@dataclass(frozen=True)
class TrainingRecord:
    """How training to a criterion went: optimiser steps, wall-clock seconds, and (step, value) of every check."""

    what: str
    least: float
    steps: int
    seconds: float
    values: tuple[tuple[int, float], ...]

    def __str__(self) -> str:
        return f"{self.what} {self.values[-1][1]:.3g} (needed: {self.least:.3g}) after {self.steps} steps"


def train_to_criterion(
    module: CausalModule,
    batches: Iterable[Rows],
    settings: TrainingSettings,
    criterion: Criterion,
    *,
    pad: int,
    loss: Callable[[Any, Rows, int], torch.Tensor] = next_token_loss,
) -> TrainingRecord:
    """Train ``module`` in place on one batch of token-id rows after another until ``criterion`` holds.

    ``loss(module, batch, pad)`` gives the objective. Of ``settings`` count the optimiser's numbers and the warm-up; the
    learning rate then stays, since nobody knows the last step. One thread: same seed, same bits on one kind of machine.
    Raises ``ModelError`` where the cap is reached, where the batches run out, or where loss or measure are not finite.
    """
    began = perf_counter()
    trainer = Trainer(module, settings, criterion.cap, constant=True)
    values: list[tuple[int, float]] = []
    with one_thread(), training_mode(module):
        for batch in batches:
            trainer.step(loss(module, batch, pad))
            if trainer.steps % criterion.every == 0:
                values.append((trainer.steps, _measured(module, criterion, trainer.steps)))
                if _holds(values, criterion):
                    seconds = perf_counter() - began
                    return TrainingRecord(criterion.what, criterion.least, trainer.steps, seconds, tuple(values))
            if trainer.steps >= criterion.cap:
                break
    best = max((value for _, value in values), default=float("nan"))
    end = "the cap" if trainer.steps >= criterion.cap else "there are no more batches"
    raise ModelError(
        f"training did not reach its criterion, {criterion.what} of {criterion.least:.4g} or more at "
        f"{criterion.checks} checks in a row; the best of {len(values)} checks was {best:.4g} after "
        f"{trainer.steps} steps ({end}); raise the cap, or lower the learning rate"
    )


def _holds(values: Sequence[tuple[int, float]], criterion: Criterion) -> bool:
    last = values[-criterion.checks :]
    return len(last) == criterion.checks and all(value >= criterion.least for _, value in last)


def _measured(module: CausalModule, criterion: Criterion, step: int) -> float:
    module.eval()
    try:
        with torch.no_grad():
            value = float(criterion.measure(module))
    finally:
        module.train()
    if not np.isfinite(value):
        raise ModelError(f"training stopped at step {step}: {criterion.what} is {value}")
    return value


def endless_batches(rows: Rows, settings: TrainingSettings, seed: int) -> Iterator[list[Sequence[int]]]:
    """Batches of the same rows over and over, every epoch in an order of its own."""
    epoch = 0
    while True:
        for batch in shuffled_batches(len(rows), settings, np.random.SeedSequence([seed, epoch]), epochs=1):
            yield [rows[index] for index in batch]
        epoch += 1


def mean_log_probability(rows: Rows, pad: int) -> Callable[[Any], float]:
    """A measure: mean log-probability (nats a token) of every token but each row's first."""
    return lambda module: -float(next_token_loss(module, rows, pad))


def greedy_share(rows: Rows, targets: Sequence[int], pad: int) -> Callable[[Any], float]:
    """A measure: share of rows whose last ``targets[i]`` tokens are each the module's first choice."""

    def measure(module: CausalModule) -> float:
        ids, _ = pad_rows(rows, pad, module.device)
        choices = module(input_ids=ids, use_cache=False).logits.argmax(-1)
        right = [
            bool((choices[row, len(ids_) - count - 1 : len(ids_) - 1] == ids[row, len(ids_) - count : len(ids_)]).all())
            for row, (ids_, count) in enumerate(zip(rows, targets, strict=True))
        ]
        return float(np.mean(right))

    return measure
