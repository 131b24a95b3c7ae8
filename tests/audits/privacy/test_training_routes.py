"""LoRA, DP and TRL's trainers against another training of the same texts, by code of torch alone.

The control of a run trains plain SFT and DPO so (*known-training*); these trainers, which few runs use, are held here.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.audits.privacy.controls import known_training as control
from lm_audit.audits.privacy.controls.known_training import known_training, mean_logprobs
from lm_audit.audits.privacy.controls.plain_training import descend, double, logprobs, plain_dpo, plain_sft
from lm_audit.audits.privacy.stages.config import DpSettings, LoraSettings, StagesConfig, TrainSettings
from lm_audit.audits.privacy.training import dp, own_stages, trl_stages
from tests.present import present

Fault = Callable[[pytest.MonkeyPatch], None]
SFT = TrainSettings(epochs=3, lr=1e-2, batch_size=10**4, warmup_steps=0, final_share=0.0)
LORA = LoraSettings(r=4, alpha=32, dropout=0.0, targets=("q_proj", "v_proj", "o_proj", "up_proj", "down_proj"))
FAST = replace(SFT, lr=0.05)
NOISE_FOR = dp.noise_for
"""As it is, whatever fault takes its place."""
PRIVATE = DpSettings(epsilon=8.0, max_grad_norm=0.5)
CHANGES: Mapping[str, dict[str, Any]] = {
    # Adapters begin at 0 and move little at first.
    "lora": {"lora": LORA, "sft": FAST, "dpo": FAST},
    "dp": {"dp": PRIVATE, "sft": SFT, "dpo": SFT},
    "trl": {"trainer": "trl", "sft": SFT, "dpo": SFT},
    "trl, lora": {"trainer": "trl", "lora": LORA, "sft": FAST, "dpo": FAST},
}


class Adapted(torch.nn.Module):
    """A linear layer of a frozen weight to which the product of two small ones is added."""

    def __init__(self, weight: torch.Tensor, down: torch.Tensor, scale: float):
        super().__init__()
        self.weight = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
        self.down = torch.nn.Parameter(down.detach().clone().to(weight.dtype))
        self.up = torch.nn.Parameter(torch.zeros(weight.shape[0], down.shape[0], dtype=weight.dtype))
        self.scale = scale

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values @ (self.weight + self.scale * self.up @ self.down).T


def with_adapters(base: Any, config: StagesConfig) -> Any:
    """The base in float64 with adapters of our own, which begin with the same draws."""
    lora = present(config.lora)
    drawn: Any = DRAWN.pop() if config.trainer == "trl" else own_stages._adapted(copy.deepcopy(base), config)
    parts = dict(drawn.base_model.model.named_modules())
    made: Any = double(base).requires_grad_(False)
    for name, layer in list(made.named_modules()):
        if name.rpartition(".")[2] in lora.targets:
            owner = made.get_submodule(name.rpartition(".")[0])
            known = getattr(parts[name], "lora_A", None)
            down = known["default"].weight if known else torch.full((lora.r, layer.weight.shape[1]), 0.1)
            setattr(owner, name.rpartition(".")[2], Adapted(layer.weight, down, lora.alpha / lora.r))
    return made


DRAWN: list[Any] = []
"""What TRL's trainer put into the model, as it was before the training."""


def noted(honest: Any, trainer: Any, stage: str, *rest: Any) -> Any:
    if stage == "sft" and hasattr(trainer.model, "base_model") and hasattr(trainer.model, "peft_config"):
        DRAWN.append(copy.deepcopy(trainer.model))
    return honest(trainer, stage, *rest)


def plain_private(module: Any, texts: list[str], settings: TrainSettings, config: StagesConfig) -> list[float]:
    """Each text's gradient cut to its length, their sum with normal noise, over the batch; AdamW without a cut."""
    private = present(config.dp)
    steps, count = settings.epochs, len(texts)
    multiplier = NOISE_FOR(private, 1 / count, 1.0, steps)
    weights = list(module.parameters())
    generator = torch.Generator()
    taken = [0]

    def slopes() -> tuple[float, list[torch.Tensor]]:
        sums = [torch.zeros_like(weight) for weight in weights]
        losses = []
        for text in texts:
            loss = -logprobs(module, [("", text)])[0] / (len(text.encode()) + 1)
            each = torch.autograd.grad(loss, weights)
            length = math.sqrt(sum(float((part**2).sum()) for part in each))
            for total, part in zip(sums, each, strict=True):
                total += part * min(1.0, private.max_grad_norm / (length + 1e-6))
            losses.append(float(loss.detach()))
        generator.manual_seed(config.seed * 1_000_003 + taken[0])
        taken[0] += 1
        for total in sums:
            noise = torch.normal(0.0, multiplier * private.max_grad_norm, total.shape, generator=generator)
            total += noise.double()
        return math.fsum(losses) / count, [total / settings.batch_size for total in sums]

    return descend(weights, slopes, replace(settings, clip=math.inf))


def plain_stages(base: Any, rows: Any, config: StagesConfig) -> Any:
    """As the control's own, with adapters or in private."""
    untouched = double(base)
    tuned = double(base) if config.lora is None else with_adapters(base, config)
    texts = [str(row["text"]) for row in rows["sft"]]
    private = None if config.dp is None else plain_private(tuned, texts, config.sft, config)
    losses = {"sft": private if private is not None else plain_sft(tuned, texts, config.sft)}
    after, before = {"base": untouched, "sft": tuned}, {"base": untouched, "sft": untouched}
    for stage in control.DPO_STAGES:
        after[stage], before[stage] = copy.deepcopy(tuned), tuned
        losses[stage] = plain_dpo(after[stage], rows[stage], config.dpo, config.beta)
    scored = [
        {stage: mean_logprobs(module, control._scored(stage, rows)) for stage, module in modules.items()}
        for modules in (after, before)
    ]
    return scored[0], scored[1], losses


def trained(kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The control with another trainer and its other route."""
    honest = control.control_config

    def config(seed: int, folder: Path) -> StagesConfig:
        return replace(honest(seed, folder), **CHANGES[kind])

    DRAWN.clear()
    monkeypatch.setattr(control, "control_config", config)
    monkeypatch.setattr(control, "plain_stages", plain_stages)
    monkeypatch.setattr(trl_stages, "_finish", partial(noted, trl_stages._finish))
    # Adapters move their texts little: both routes must come nearer to each other than in a run.
    monkeypatch.setattr(control, "TOLERANCE", 1e-4)
    monkeypatch.setattr(control, "LEAST_MOVED", 5e-3)
    for name, value in (("MEMBERS", 1), ("REPETITIONS", (3,)), ("DOCUMENTS", 100), ("STEPS", 3), ("PAIRS", 6)):
        monkeypatch.setattr(control, name, value)
    return present(known_training(0).control)


def put(module: Any, name: str, fault: Callable[..., Any]) -> Fault:
    """``fault(honest, ...)`` in place of a function."""
    return lambda patch: patch.setattr(module, name, partial(fault, getattr(module, name)))


def whole_base(honest: Any, module: Any, config: Any) -> Any:
    """The weights under the adapter are trained with it."""
    made = honest(module, config)
    made.requires_grad_(True)
    return made


def with_arguments(**changed: Any) -> Fault:
    return put(trl_stages, "_arguments", lambda honest, *words: honest(*words) | changed)


def of_preferences(**changed: Any) -> Fault:
    """TRL's own settings of DPO, changed."""

    def fault(honest: Any) -> Any:
        trl = honest()
        made = type("Trl", (), {name: getattr(trl, name) for name in ("SFTConfig", "SFTTrainer", "DPOTrainer")})
        made.DPOConfig = staticmethod(lambda **options: trl.DPOConfig(**options | changed))  # type: ignore[attr-defined]
        return made

    return put(trl_stages, "_trl", fault)


def turned(honest: Any, path: Any) -> Any:
    return [{**pair, "chosen": pair["rejected"], "rejected": pair["chosen"]} for pair in honest(path)]


def unclipped(honest: Any, self: Any, module: Any, settings: Any, private: Any, noise: float, seed: int) -> None:
    """No example's gradient is cut; the noise is as it would be."""
    honest(self, module, settings, replace(private, max_grad_norm=1e9), noise * private.max_grad_norm / 1e9, seed)


def other_draws(honest: Any, self: Any, module: Any, settings: Any, private: Any, noise: float, seed: int) -> None:
    honest(self, module, settings, private, noise, seed + 1)


def method(name: str, fault: Callable[..., Any]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(dp.PrivateUpdate, name)
        patch.setattr(dp.PrivateUpdate, name, lambda self, *words: fault(honest, self, *words))

    return apply


FAULTS: dict[str, tuple[str, Fault]] = {
    "lora: twice the scale": (
        "lora",
        put(own_stages, "lora_config", lambda f, m, lora: f(m, replace(lora, alpha=2 * lora.alpha))),
    ),
    "lora: one target alone": (
        "lora",
        put(own_stages, "lora_config", lambda f, m, lora: f(m, replace(lora, targets=lora.targets[:1]))),
    ),
    "lora: the base is trained too": ("lora", put(own_stages, "_adapted", whole_base)),
    "lora: dropout that nobody asked for": (
        "lora",
        put(own_stages, "lora_config", lambda f, m, lora: f(m, replace(lora, dropout=0.5))),
    ),
    "dp: gradients are not cut": ("dp", method("__init__", unclipped)),
    "dp: other noise": ("dp", method("__init__", other_draws)),
    "dp: half of the noise": ("dp", put(dp, "noise_for", lambda f, *words: f(*words) / 2)),
    "dp: sums of tokens in the place of their means": (
        "dp",
        put(dp, "example_nll", lambda f, module, ids, mask: f(module, ids, mask) * mask[:, 1:].sum(1)),
    ),
    "trl: sides exchanged": ("trl", put(trl_stages, "read_preferences", turned)),
    "trl: another beta": ("trl", of_preferences(beta=0.4)),
    "trl: a text lost": ("trl", put(trl_stages, "read_texts", lambda f, path: list(f(path))[1:])),
    "trl: a rate that does not fall": ("trl", with_arguments(lr_scheduler_type="constant")),
    "trl: weights that decay": ("trl", with_arguments(weight_decay=0.9)),
    "trl: another second moment": ("trl", with_arguments(adam_beta2=0.5)),
    "trl: twice the scale of the adapter": (
        "trl, lora",
        put(trl_stages, "lora_config", lambda f, m, lora: f(m, replace(lora, alpha=2 * lora.alpha))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_what_is_trained_right_passes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = trained(kind, monkeypatch)
    assert verdict.passed, verdict.observed


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_these_trainers_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, apply = FAULTS[fault]
    apply(monkeypatch)
    verdict = trained(kind, monkeypatch)
    assert not verdict.passed
    # The other route was taken, and what was trained is what differs.
    assert "by another route" in verdict.observed or "from what another training gives them" in verdict.observed
