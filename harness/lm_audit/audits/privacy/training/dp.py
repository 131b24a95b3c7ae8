"""DP-SGD on the SFT corpus with Opacus: Poisson batches, per-example clipping, Gaussian noise, an accountant.

Epsilon is only ever stated when the per-example gradients that clipping relies on were checked on this very model.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lm_audit.audits.privacy.stages.config import DpSettings, TrainSettings
from lm_audit.audits.privacy.training.batches import Ids, encode_rows, pad, require_context, token_nll
from lm_audit.audits.privacy.training.dropout import without_dropout
from lm_audit.audits.privacy.training.loop import (
    Progress,
    finite_loss,
    load_checkpoint,
    rate_factor,
    save_checkpoint,
    set_rate,
)
from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.tokenizer import Tokenizer

SELF_CHECK_ROWS = 8
SELF_CHECK_TOLERANCE = 1e-4
STAGE = "dp_sft"
NO_CLIPPING = 1e9
OVERSPENT = 1.1


@dataclass(frozen=True)
class DpResult:
    """The progress, the noise that was added, and what the accountant says was spent (None for epsilon inf)."""

    progress: Progress
    settings: DpSettings
    delta: float
    noise_multiplier: float
    spent: float | None
    self_check: float

    def to_json(self) -> dict[str, Any]:
        """What the metadata record: infinite epsilon as the string ``"inf"``."""
        target = "inf" if math.isinf(self.settings.epsilon) else self.settings.epsilon
        return {
            "target_epsilon": target,
            "spent_epsilon": self.spent,
            "delta": self.delta,
            "noise_multiplier": self.noise_multiplier,
            "max_grad_norm": None if math.isinf(self.settings.epsilon) else self.settings.max_grad_norm,
            "accountant": self.settings.accountant,
            "gradient_self_check": self.self_check,
        }


def train_texts_privately(
    module: CausalModule,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    settings: TrainSettings,
    dp: DpSettings,
    *,
    seed: int,
    checkpoint: Path | None = None,
    every: int = 50,
) -> DpResult:
    """Train in place; loss: mean over the batch of each example's mean negative log-likelihood, padding left out.

    Delta defaults to 1 / number of rows. Epsilon inf is the same loop without noise and clipping. Raises ``ModelError``
    where the per-example gradients are wrong for this architecture, or at a loss that is not finite.
    """
    rows = encode_rows(tokenizer, texts, settings.max_length)
    require_context(module, [len(row) for row in rows], "this training text", "--sft")
    check = gradient_self_check(module, rows[:SELF_CHECK_ROWS])
    delta = dp.delta if dp.delta is not None else 1 / len(rows)
    rate = min(1.0, settings.batch_size / len(rows))
    steps = settings.epochs * math.ceil(len(rows) / settings.batch_size)
    noise = noise_for(dp, delta, rate, steps)
    run = _PrivateRun(module, rows, settings, dp, rate, noise, seed)
    with without_dropout(module):
        progress = run.train(steps, checkpoint, every)
    spent = run.spent(delta, progress.step) if noise > 0 else None
    if spent is not None and spent > OVERSPENT * dp.epsilon:
        warnings.warn(f"epsilon {spent:.2f} was spent, {dp.epsilon} was the target", stacklevel=2)
    return DpResult(progress, dp, delta, noise, spent, check)


def noise_for(dp: DpSettings, delta: float, sample_rate: float, steps: int) -> float:
    """The noise multiplier that spends ``dp.epsilon`` in ``steps``; 0 for infinity."""
    if math.isinf(dp.epsilon):
        return 0.0
    from opacus.accountants.utils import get_noise_multiplier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(
            get_noise_multiplier(
                target_epsilon=dp.epsilon,
                target_delta=delta,
                sample_rate=sample_rate,
                steps=steps,
                accountant=dp.accountant,
            )
        )


class _PrivateRun:
    """One DP training run; batches and noise are drawn from (seed, step), so that a resumed run is the same run."""

    def __init__(
        self,
        module: CausalModule,
        rows: Sequence[Ids],
        settings: TrainSettings,
        dp: DpSettings,
        rate: float,
        noise: float,
        seed: int,
    ):
        self.module, self.rows, self.settings, self.dp = module, rows, settings, dp
        self.rate, self.noise, self.seed = rate, noise, seed

    def train(self, steps: int, checkpoint: Path | None, every: int) -> Progress:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        self.module.train()
        inner = self._adamw()
        progress = Progress(STAGE)
        if checkpoint is not None and checkpoint.is_file():
            progress = load_checkpoint(checkpoint, self.module, inner, STAGE)
        wrapped = GradSampleModule(self.module)
        self._generator = torch.Generator(device=self._device())
        optimizer = DPOptimizer(
            inner,
            noise_multiplier=self.noise,
            max_grad_norm=self.dp.max_grad_norm if self.noise > 0 else NO_CLIPPING,
            expected_batch_size=self.settings.batch_size,
            generator=self._generator,
        )
        try:
            factor = rate_factor(self.settings, steps)
            for step in range(progress.step, steps):
                set_rate(inner, self.settings.lr * factor(step))
                self._step(wrapped, optimizer, progress, step)
                if checkpoint is not None and progress.step % every == 0 and progress.step < steps:
                    save_checkpoint(checkpoint, self.module, inner, progress)
        finally:
            wrapped.to_standard_module()
            self.module.eval()
        return progress

    def _adamw(self) -> torch.optim.AdamW:
        trained = [p for p in self.module.parameters() if p.requires_grad]
        s = self.settings
        return torch.optim.AdamW(trained, lr=s.lr, betas=s.betas, weight_decay=s.weight_decay)

    def _step(self, wrapped: Any, optimizer: Any, progress: Progress, step: int) -> None:
        batch = np.flatnonzero(np.random.default_rng((self.seed, step)).random(len(self.rows)) < self.rate)
        progress.step = step + 1
        if not len(batch):  # a Poisson batch may be empty; the accountant still counts the step
            return
        ids, mask = pad([self.rows[int(i)] for i in batch], self._device())
        self._generator.manual_seed(self.seed * 1_000_003 + step)
        optimizer.zero_grad(set_to_none=True)
        loss = example_nll(wrapped, ids, mask).mean()
        progress.losses.append(finite_loss(loss, STAGE, step, progress.losses))
        with _quiet_hooks():
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def _device(self) -> torch.device:
        device: torch.device = self.module.get_input_embeddings().weight.device
        return device

    def spent(self, delta: float, steps: int) -> float:
        """Epsilon by the accountant after ``steps``."""
        from opacus.accountants import create_accountant

        accountant = create_accountant(mechanism=self.dp.accountant)
        accountant.history = [(self.noise, self.rate, steps)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(accountant.get_epsilon(delta=delta))


def example_nll(module: CausalModule, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean negative log-likelihood of each example over its own tokens, [rows]."""
    return token_nll(module, ids, mask).sum(1) / mask[:, 1:].sum(1)


@contextmanager
def _quiet_hooks() -> Iterator[None]:
    """Token ids have no gradient, of which a hook of Opacus warns at every step."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        yield


def gradient_self_check(module: CausalModule, rows: Sequence[Ids]) -> float:
    """Largest relative error of Opacus' per-example gradients against one backward pass an example.

    Raises ``ModelError`` above 1e-4: such a model (GPT-2 is one, by its learned positions) gets no epsilon.
    """
    from opacus import GradSampleModule

    # On a copy: hooks and gradients leave no trace in the model that is trained.
    probe: Any = copy.deepcopy(module).eval()
    device = probe.get_input_embeddings().weight.device
    expected = [_gradients(probe, row, device) for row in rows]
    try:
        wrapped = GradSampleModule(probe)
        ids, mask = pad(rows, device)
        wrapped.train()
        for layer in wrapped.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.eval()
        with _quiet_hooks():
            example_nll(wrapped, ids, mask).mean().backward()  # type: ignore[no-untyped-call]
        found = [p.grad_sample for p in probe.parameters() if p.requires_grad]
    except Exception as error:
        raise ModelError(f"Opacus cannot take per-example gradients of this model ({error}); no epsilon") from error
    worst = max(_relative_error(sample, [e[i] for e in expected]) for i, sample in enumerate(found))
    if worst > SELF_CHECK_TOLERANCE:
        raise ModelError(
            f"per-example gradients of this model are off by {worst:.2g} (relative; at most {SELF_CHECK_TOLERANCE:g}): "
            "clipping would not bound an example's influence, so no epsilon can be stated"
        )
    return worst


def _gradients(module: Any, row: Ids, device: torch.device) -> list[torch.Tensor]:
    module.zero_grad(set_to_none=True)
    ids, mask = pad([row], device)
    example_nll(module, ids, mask).mean().backward()  # type: ignore[no-untyped-call]
    return [p.grad.clone() for p in module.parameters() if p.requires_grad]


def _relative_error(sample: torch.Tensor, expected: Sequence[torch.Tensor]) -> float:
    # Opacus undoes the mean of the loss: grad_sample holds the gradient of each example's own loss.
    truth = torch.stack(list(expected))
    return float((sample - truth).norm() / truth.norm().clamp_min(1e-12))
