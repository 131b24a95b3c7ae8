"""What the settings of a privacy run may be: numbers in their ranges, models and devices that have a name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError

if TYPE_CHECKING:
    from lm_audit.audits.privacy.config import DpSettings, LoraSettings, StagesConfig, TrainSettings

ACCOUNTANTS = ("rdp", "prv", "gdp")
MOST = 2**63 - 1


def check_stages_config(config: StagesConfig) -> None:
    """``UsageError`` naming the first field that cannot be used, its value, and what would be right."""
    from lm_audit.audits.privacy.families import FAMILIES
    from lm_audit.models.devices import check_device_name
    from lm_audit.models.spec import parse_spec

    _one_of("family", config.family, tuple(FAMILIES), shown="unknown canary family {0!r}; known families: {1}")
    for name, least in (("members", 1), ("controls", 0), ("documents", 1), ("pairs", 1), ("pairs_per_canary", 1)):
        whole(name, getattr(config, name), least)
    whole("seed", config.seed, 0, MOST)
    whole("decoys", config.decoys, 0, config.documents if config.documents_path is None else MOST)
    _some("repetitions", config.repetitions)
    for repetitions in config.repetitions:
        whole("repetitions", repetitions, 1)
    number("beta", config.beta, above=0)
    _one_of("trainer", config.trainer, ("own", "trl"))
    _one_of("assignment", config.assignment, ("fixed", "coins"))
    _one_of("pair_style", config.pair_style, ("secret", "source"))
    check_training("sft", config.sft)
    check_training("dpo", config.dpo)
    if config.lora is not None:
        check_lora(config.lora)
    if config.dp is not None:
        check_private(config.dp)
        if config.trainer == "trl":
            raise UsageError("DP-SFT runs in the project's own loop; use trainer='own' together with an epsilon")
    if not isinstance(config.model, str):
        raise UsageError(f"model must be a model spec, got {config.model!r}")
    parse_spec(config.model)
    check_device_name(config.device)
    _check_tiny(config.tiny)


def check_training(where: str, settings: TrainSettings) -> None:
    """Optimiser settings: whole numbers of epochs, rows and steps, rates and shares that are numbers."""
    for name, least in (("epochs", 1), ("batch_size", 1), ("warmup_steps", 0), ("max_length", 2)):
        whole(f"{where}.{name}", getattr(settings, name), least)
    number(f"{where}.lr", settings.lr, above=0)
    number(f"{where}.clip", settings.clip, above=0)
    number(f"{where}.final_share", settings.final_share, least=0, most=1)
    number(f"{where}.weight_decay", settings.weight_decay, least=0)
    if not isinstance(settings.betas, tuple) or len(settings.betas) != 2:
        raise UsageError(f"{where}.betas must be two numbers, got {settings.betas!r}")
    for beta in settings.betas:
        number(f"{where}.betas", beta, least=0, below=1)


def check_lora(settings: LoraSettings) -> None:
    """Ranks and scales of at least 1, a dropout below 1, names of layers."""
    whole("lora.r", settings.r, 1)
    number("lora.alpha", settings.alpha, above=0)
    number("lora.dropout", settings.dropout, least=0, below=1)
    _some("lora.targets", settings.targets)
    if not all(isinstance(target, str) and target for target in settings.targets):
        raise UsageError(f"lora.targets must be names of layers, got {settings.targets!r}")


def check_private(settings: DpSettings) -> None:
    """An epsilon above 0 (infinity: no noise), a delta between 0 and 1."""
    if not _is_number(settings.epsilon) or not settings.epsilon > 0:
        raise UsageError(f"epsilon must be above 0 (inf for no noise), got {settings.epsilon!r}")
    if settings.delta is not None:
        number("dp.delta", settings.delta, above=0, below=1)
    number("dp.max_grad_norm", settings.max_grad_norm, above=0)
    _one_of("dp.accountant", settings.accountant, ACCOUNTANTS)


def _check_tiny(settings: Any) -> None:
    for name, least in (("layers", 1), ("hidden", 1), ("heads", 1), ("mlp", 1), ("context", 2), ("rows", 1)):
        whole(f"tiny.{name}", getattr(settings, name), least)
    whole("tiny.decoys", settings.decoys, 0, settings.rows)
    if settings.hidden % settings.heads:
        raise UsageError(f"tiny.hidden = {settings.hidden} is no multiple of tiny.heads = {settings.heads}")


def whole(name: str, value: Any, least: int, most: int = MOST) -> None:
    """``UsageError`` unless the value is a whole number in the range."""
    wanted = f"must be at least {least}" if most == MOST else f"must be a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} {wanted}, got {value!r}")


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """``UsageError`` unless the value is a finite number within the limits."""
    limits = ((above, "above"), (least, "at least"), (below, "below"), (most, "at most"))
    wanted = " and ".join(f"{word} {limit:g}" for limit, word in limits if limit is not None)
    fits = (
        _is_number(value)
        and math.isfinite(value)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
        and (most is None or value <= most)
    )
    if not fits:
        raise UsageError(f"{name} must be a number {wanted}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _some(name: str, values: Any) -> None:
    if not isinstance(values, tuple) or not values:
        raise UsageError(f"{name} must be a list with at least one entry, got {values!r}")


def _one_of(name: str, value: Any, allowed: tuple[str, ...], shown: str = "") -> None:
    if value not in allowed or not isinstance(value, str):
        text = shown.format(value, ", ".join(allowed)) if shown else ""
        raise UsageError(text or f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")
