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
from lm_audit.audits.privacy.training.loop import Progress, Update, run_steps
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
    device = module.get_input_embeddings().weight.device

    def loss_of(batch: list[int]) -> torch.Tensor:
        ids, mask = pad([rows[i] for i in batch], device)
        return example_nll(module, ids, mask).mean()

    # Drawn from (seed, step), so that a resumed run is the same run.
    draws = (np.random.default_rng((seed, step)).random(len(rows)) for step in range(steps))
    batches = [np.flatnonzero(draw < rate).tolist() for draw in draws]
    with without_dropout(module), _used_alone(module, rows[:SELF_CHECK_ROWS]):
        update = PrivateUpdate(module, settings, dp, noise, seed)
        progress = run_steps(
            module, batches, loss_of, settings, stage=STAGE, checkpoint=checkpoint, every=every, update=update
        )
    spent = spent_epsilon(dp, noise, rate, delta, progress.step) if noise > 0 else None
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


class PrivateUpdate(Update):
    """Each example's gradient clipped by itself, Gaussian noise on their sum, then AdamW.

    The noise is drawn from (seed, step), so that a resumed run is the same run.
    """

    def __init__(self, module: CausalModule, settings: TrainSettings, dp: DpSettings, noise: float, seed: int):
        super().__init__(module, settings, STAGE)
        self._module, self._dp, self._noise, self._seed = module, dp, noise, seed
        self._batch_size = settings.batch_size
        self._generator = torch.Generator(device=module.get_input_embeddings().weight.device)
        self._private: Any = None

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Opacus' hooks are on the module, and off again at the end."""
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        wrapped = GradSampleModule(self._module)
        self._private = DPOptimizer(
            self.optimizer,
            noise_multiplier=self._noise,
            max_grad_norm=self._dp.max_grad_norm if self._noise > 0 else NO_CLIPPING,
            expected_batch_size=self._batch_size,
            generator=self._generator,
        )
        try:
            yield
        finally:
            wrapped.to_standard_module()
            self._module.eval()

    def take(self, loss: torch.Tensor, step: int) -> None:
        """Move the weights by the mean of the examples' losses."""
        self._generator.manual_seed(self._seed * 1_000_003 + step)
        with _quiet_hooks():
            loss.backward()  # type: ignore[no-untyped-call]
        self._private.step()
        self._private.zero_grad(set_to_none=True)


def spent_epsilon(dp: DpSettings, noise: float, rate: float, delta: float, steps: int) -> float:
    """Epsilon by the accountant after ``steps``."""
    from opacus.accountants import create_accountant

    accountant = create_accountant(mechanism=dp.accountant)
    accountant.history = [(noise, rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta=delta))


@contextmanager
def _used_alone(module: CausalModule, rows: Sequence[Ids]) -> Iterator[None]:
    """Parameters to which no gradient comes are not trained meanwhile: Opacus would ask for the gradient of each."""
    device = module.get_input_embeddings().weight.device
    ids, mask = pad(rows, device)
    example_nll(module, ids, mask).mean().backward()  # type: ignore[no-untyped-call]
    unused = [p for p in module.parameters() if p.requires_grad and p.grad is None]
    module.zero_grad(set_to_none=True)
    for parameter in unused:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in unused:
            parameter.requires_grad_(True)


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
        trained = [p for p in probe.parameters() if p.requires_grad]
        found = [p.new_zeros(len(rows), *p.shape) if p.grad_sample is None else p.grad_sample for p in trained]
    except Exception as error:
        raise ModelError(f"Opacus cannot take per-example gradients of this model ({error}); no epsilon") from error
    worst = float(np.max([_relative_error(sample, [e[i] for e in expected]) for i, sample in enumerate(found)]))
    if not worst <= SELF_CHECK_TOLERANCE:
        raise ModelError(
            f"per-example gradients of this model are off by {worst:.2g} (relative; at most {SELF_CHECK_TOLERANCE:g}): "
            "clipping would not bound an example's influence, so no epsilon can be stated"
        )
    return worst


def _gradients(module: Any, row: Ids, device: torch.device) -> list[torch.Tensor]:
    module.zero_grad(set_to_none=True)
    ids, mask = pad([row], device)
    example_nll(module, ids, mask).mean().backward()  # type: ignore[no-untyped-call]
    # A parameter that the loss does not hang on (a pooler, a head for something else) has no gradient.
    trained = [p for p in module.parameters() if p.requires_grad]
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in trained]


def _relative_error(sample: torch.Tensor, expected: Sequence[torch.Tensor]) -> float:
    # Opacus undoes the mean of the loss: grad_sample holds the gradient of each example's own loss.
    truth = torch.stack(list(expected))
    return float((sample - truth).norm() / truth.norm().clamp_min(1e-12))
