"""Training without dropout, wherever a model keeps its probability.

Dropout makes two passes over one text differ: DPO's first loss is no longer ln 2, and how well a canary is memorised
hangs on a setting of the architecture. Models hold the probability as an ``nn.Dropout``, as a number of a module that
calls the function (``attention_dropout``, ``layerdrop``), or in the config alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import drops_values

_NAMES = ("drop", "jitter")
"""Parts of the names of attributes that hold a probability of leaving something out, or the width of random noise."""

_PROBE = 8


@contextmanager
def without_dropout(module: CausalModule, *, keep: tuple[str, ...] = ()) -> Iterator[None]:
    """Every dropout of ``module`` and its configs is 0 inside the block and what it was after it.

    Modules whose qualified name holds a part of ``keep`` stay as they are (``("lora_",)``: an adapter's own dropout was
    asked for). Raises ``ModelError`` where a pass in training mode without any dropout is not that of evaluation.
    """
    evaluated = _answer(module, training=False)
    others = {(id(holder), name) for holder, name, _ in _probabilities(module, keep)}
    changed = [_zeroed(holder, name, value) for holder, name, value in list(_probabilities(module, ()))]
    try:
        _require_sameness(module, evaluated)
        for holder, name, value in changed:
            if (id(holder), name) not in others:
                setattr(holder, name, value)
        yield
    finally:
        for holder, name, value in changed:
            setattr(holder, name, value)


def has_adapter(module: CausalModule) -> bool:
    """Whether LoRA layers stand beside the model's own."""
    return any("lora_" in name for name, _ in module.named_modules())


def _zeroed(holder: object, name: str, value: float) -> tuple[Any, str, float]:
    setattr(holder, name, 0.0)
    return holder, name, value


def _probabilities(module: CausalModule, keep: tuple[str, ...]) -> Iterator[tuple[Any, str, float]]:
    """Where a probability above 0 is kept: (object, attribute, value)."""
    seen: set[int] = set()
    for name, layer in module.named_modules():
        if any(part in name for part in keep):
            continue
        for holder in (layer, *_configs(layer)):
            if id(holder) not in seen:
                seen.add(id(holder))
                yield from ((holder, key, value) for key, value in _numbers(holder))


def _numbers(holder: Any) -> Iterator[tuple[str, float]]:
    if drops_values(holder):
        yield "p", float(holder.p)
    for name, value in list(vars(holder).items()):
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        if is_number and value > 0 and any(part in name.lower() for part in _NAMES):
            yield name, value


def _configs(layer: object) -> Iterator[Any]:
    """The layer's config and those nested in it."""
    config = vars(layer).get("config")
    if config is None or isinstance(config, dict) or not hasattr(config, "__dict__"):
        return
    yield config
    yield from (part for part in vars(config).values() if hasattr(part, "to_dict"))


@torch.no_grad()
def _answer(module: CausalModule, *, training: bool, seed: int = 0) -> torch.Tensor:
    """Logits of a few tokens in training mode or in evaluation."""
    embedding = module.get_input_embeddings().weight
    ids = torch.arange(embedding.shape[0] // 3, embedding.shape[0] // 3 + _PROBE, device=embedding.device)[None]
    before = module.training
    module.train(training)
    try:
        with torch.random.fork_rng(devices=[embedding.device] if embedding.device.type == "cuda" else []):
            torch.manual_seed(seed)
            logits: torch.Tensor = module(input_ids=ids % embedding.shape[0], use_cache=False).logits.float()
            return logits
    finally:
        module.train(before)


def _require_sameness(module: CausalModule, evaluated: torch.Tensor) -> None:
    """``ModelError`` where the module in training mode answers equal questions differently, or not as it is evaluated
    (Phi-3.5-MoE's ``router_jitter_noise`` counts there too, so that it cannot be left out).
    """
    answers = [_answer(module, training=True, seed=seed) for seed in (1, 2, 3)]
    # Kernels that add in another order differ by rounding.
    most = 1e-3 * (float(answers[0].std()) or 1.0)
    worst = max(float((other - answers[0]).abs().max()) for other in answers[1:])
    if worst > most:
        raise ModelError(
            f"{type(module).__name__} is random in training mode even without dropout (logits differ by {worst:.3g}): "
            "stages trained from it could not be compared; give a model without noise of its own"
        )
    if (off := float((evaluated - answers[0]).abs().max())) > most:
        raise ModelError(
            f"{type(module).__name__} without its dropout and noise computes otherwise in training mode than in"
            f" evaluation (logits differ by {off:.3g}): another model would be trained than is measured; give one"
            " without noise of its own"
        )
