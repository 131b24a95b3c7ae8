"""The training loop of every stage, with DP or without: steps, schedule, checkpoints, and a stop at NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from lm_audit.audits.privacy.stages.config import TrainSettings
from lm_audit.errors import ModelError, StoreError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.toy.training import TrainingSettings, lr_factor
from lm_audit.shared.progress import OnProgress
from lm_audit.shared.textfiles import replacing

LossOf = Callable[[list[int]], torch.Tensor]


@dataclass
class Progress:
    """Where a stage stands: steps done and the loss of each; written with every checkpoint."""

    stage: str
    step: int = 0
    losses: list[float] = field(default_factory=list)


class Update:
    """How the loss of a step moves the weights: all gradients clipped together, then AdamW."""

    def __init__(self, module: CausalModule, settings: TrainSettings, stage: str):
        self.trained = [p for p in module.parameters() if p.requires_grad]
        if not self.trained:
            raise ModelError(f"stage {stage}: no parameter is trainable; is the adapter loaded as trainable?")
        self._clip = settings.clip
        self.optimizer = torch.optim.AdamW(
            self.trained, lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )

    @contextmanager
    def ready(self) -> Iterator[None]:
        """What must hold while steps are taken; entered when a checkpoint has been read."""
        yield

    def take(self, loss: torch.Tensor, step: int) -> None:
        """Move the weights by the loss of ``step``, counted from 0."""
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.trained, self._clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def run_steps(
    module: CausalModule,
    batches: Sequence[list[int]],
    loss_of: LossOf,
    settings: TrainSettings,
    *,
    stage: str,
    checkpoint: Path | None = None,
    every: int = 50,
    on_progress: OnProgress | None = None,
    update: Update | None = None,
) -> Progress:
    """Train ``module`` in place, one optimiser step a batch, and answer with the loss of every step.

    ``update`` says how a loss moves the weights. A batch may be empty (drawn by Poisson): its step has no loss.

    With ``checkpoint``, state is written every ``every`` steps and training goes on from it when the file exists; the
    result is the same as without the interruption. Raises ``ModelError`` naming stage and step at a loss that is not
    finite, ``StoreError`` where a checkpoint cannot be written.
    """
    update = update or Update(module, settings, stage)
    factor = rate_factor(settings, len(batches))
    progress = Progress(stage)
    if checkpoint is not None and checkpoint.is_file():
        progress = load_checkpoint(checkpoint, module, update.optimizer, stage)
    module.train()
    with update.ready():
        for step in range(progress.step, len(batches)):
            set_rate(update.optimizer, settings.lr * factor(step))
            if batches[step]:
                loss = loss_of(batches[step])
                progress.losses.append(finite_loss(loss, stage, step, progress.losses))
                update.take(loss, step)
            progress.step = step + 1
            if checkpoint is not None and progress.step % every == 0 and progress.step < len(batches):
                save_checkpoint(checkpoint, module, update.optimizer, progress)
            if on_progress is not None:
                on_progress(progress.step, len(batches), 0)
    module.eval()
    return progress


def rate_factor(settings: TrainSettings, steps: int) -> Callable[[int], float]:
    """Share of the learning rate by step: linear warm-up, then linear decay."""
    schedule = TrainingSettings(
        settings.epochs, settings.lr, warmup_steps=settings.warmup_steps, final_share=settings.final_share
    )
    return lr_factor(schedule, steps)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give every parameter group this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def finite_loss(loss: torch.Tensor, stage: str, step: int, earlier: Sequence[float]) -> float:
    """The loss as a number; ``ModelError`` with stage, step and the last good loss if it is NaN or infinite."""
    value = float(loss.detach())
    if math.isfinite(value):
        return value
    last = f"the loss before was {earlier[-1]:.4f}" if earlier else "it was the first step"
    raise ModelError(f"stage {stage}: the loss is {value} at step {step + 1} ({last}); training stops. Lower the lr")


def save_checkpoint(path: Path, module: CausalModule, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Replace the checkpoint whole; on a full disk the earlier one stays and ``StoreError`` says so."""
    state = {"module": module.state_dict(), "optimizer": optimizer.state_dict(), "progress": vars(progress)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, synced=True) as draft, draft.open("wb") as stream:
            torch.save(state, stream)
    except (OSError, RuntimeError) as error:
        kept = "the earlier one is kept" if path.is_file() else "there is no earlier one"
        where = f"stage {progress.stage}, step {progress.step}"
        raise StoreError(
            f"{where}: cannot write the checkpoint {path} ({error}); {kept}. Free some disk space"
        ) from error


def load_checkpoint(path: Path, module: CausalModule, optimizer: torch.optim.Optimizer, stage: str) -> Progress:
    """Restore module and optimiser; ``StoreError`` for a file that is damaged or of another stage."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        progress = Progress(**state["progress"])
        module.load_state_dict(state["module"])
        optimizer.load_state_dict(state["optimizer"])
    except Exception as error:
        raise StoreError(
            f"the checkpoint {path} cannot be read ({error}); delete it to start the stage anew"
        ) from error
    if progress.stage != stage:
        raise StoreError(f"the checkpoint {path} belongs to stage {progress.stage}, not {stage}")
    return progress
