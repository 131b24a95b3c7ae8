"""What the settings of a privacy run may be: numbers in their ranges, models and devices that have a name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import check_choice, check_number, check_seed, check_whole
from lm_audit.shared.visible import is_blank

if TYPE_CHECKING:
    from lm_audit.audits.privacy.stages.config import DpSettings, LoraSettings, StagesConfig, TrainSettings

ACCOUNTANTS = ("rdp", "prv", "gdp")
_MANY = 10**7
"""More rows, pairs or steps would not end."""
_CANARIES = 10**5
"""More canaries would need more rows than a run can train on: they may be one in a hundred."""
_LARGE = 1e6
"""Larger rates and weights leave the range of float32 in a step."""
_WIDE = 2**16
"""A larger toy would fill the memory."""


def check_stages_config(config: StagesConfig) -> None:
    """``UsageError`` naming the first field that cannot be used, its value, and what would be right."""
    from lm_audit.audits.privacy.data.families import FAMILIES
    from lm_audit.models.loading.devices import check_device_name
    from lm_audit.models.loading.spec import parse_spec

    if not isinstance(config.family, str) or config.family not in FAMILIES:
        raise UsageError(f"unknown canary family {config.family!r}; known families: {', '.join(FAMILIES)}")
    for name, least in (("members", 1), ("controls", 0), ("documents", 1), ("pairs", 1), ("pairs_per_canary", 1)):
        check_whole(name, getattr(config, name), least, _CANARIES if name in ("members", "controls") else _MANY)
    check_seed("seed", config.seed)
    check_whole("decoys", config.decoys, 0, config.documents if config.documents_path is None else _MANY)
    _some("repetitions", config.repetitions)
    for repetitions in config.repetitions:
        check_whole("repetitions", repetitions, 1, _MANY)
    _check_planted(config)
    _check_documents(config.documents_path)
    check_number("beta", config.beta, above=0, most=_LARGE)
    check_choice("trainer", config.trainer, ("own", "trl"))
    check_choice("assignment", config.assignment, ("fixed", "coins"))
    check_choice("pair_style", config.pair_style, ("secret", "source"))
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


def _check_planted(config: StagesConfig) -> None:
    """Each level of repetitions has a member, and what is planted fits into the memory."""
    levels = config.repetitions
    twice = next((level for level in levels if levels.count(level) > 1), None)
    if twice is not None:
        raise UsageError(f"repetitions holds {twice} twice, got {list(levels)}")
    if config.assignment == "fixed" and config.members < len(levels):
        raise UsageError(
            f"members = {config.members} cannot be spread over {len(levels)} levels of repetitions ({list(levels)}): "
            "some would have none; ask for more members or fewer levels"
        )
    planted = config.members * max(levels)
    if planted > _MANY:
        raise UsageError(f"{config.members} members repeated {max(levels)} times are {planted} rows, above {_MANY}")


def _check_documents(path: Path | None) -> None:
    """An empty name would be the folder that one stands in."""
    if path is None:
        return
    text = str(path)
    if is_blank(text) or path == Path() or "\0" in text:
        raise UsageError(f"documents_path {text!r:.80} names no file, folder or set of documents")


def check_training(where: str, settings: TrainSettings) -> None:
    """Optimiser settings: whole numbers of epochs, rows and steps, rates and shares that are numbers."""
    for name, least in (("epochs", 1), ("batch_size", 1), ("warmup_steps", 0), ("max_length", 2)):
        check_whole(f"{where}.{name}", getattr(settings, name), least, _MANY)
    check_number(f"{where}.lr", settings.lr, above=0, most=_LARGE)
    check_number(f"{where}.clip", settings.clip, above=0, most=1e30)
    check_number(f"{where}.final_share", settings.final_share, least=0, most=1)
    check_number(f"{where}.weight_decay", settings.weight_decay, least=0, most=_LARGE)
    if not isinstance(settings.betas, tuple) or len(settings.betas) != 2:
        raise UsageError(f"{where}.betas must be two numbers, got {settings.betas!r}")
    for beta in settings.betas:
        check_number(f"{where}.betas", beta, least=0, below=1)


def check_lora(settings: LoraSettings) -> None:
    """Ranks and scales of at least 1, a dropout below 1, names of layers."""
    check_whole("lora.r", settings.r, 1, _WIDE)
    check_number("lora.alpha", settings.alpha, above=0)
    check_number("lora.dropout", settings.dropout, least=0, below=1)
    _some("lora.targets", settings.targets)
    if not all(isinstance(target, str) and target for target in settings.targets):
        raise UsageError(f"lora.targets must be names of layers, got {settings.targets!r}")


def check_private(settings: DpSettings) -> None:
    """An epsilon above 0 (infinity: no noise), a delta between 0 and 1."""
    if settings.epsilon != math.inf:
        check_number("epsilon (inf: no noise)", settings.epsilon, above=0)
    if settings.delta is not None:
        check_number("dp.delta", settings.delta, above=0, below=1)
    check_number("dp.max_grad_norm", settings.max_grad_norm, above=0, most=1e30)
    check_choice("dp.accountant", settings.accountant, ACCOUNTANTS)


def _check_tiny(settings: Any) -> None:
    for name, least in (("layers", 1), ("hidden", 1), ("heads", 1), ("mlp", 1), ("context", 2), ("rows", 1)):
        check_whole(f"tiny.{name}", getattr(settings, name), least, _MANY if name == "rows" else _WIDE)
    check_whole("tiny.decoys", settings.decoys, 0, settings.rows)
    for name, least in (("epochs", 1), ("batch_size", 1), ("warmup_steps", 0), ("version", 0)):
        check_whole(f"tiny.{name}", getattr(settings, name), least, _MANY)
    check_number("tiny.lr", settings.lr, above=0, most=_LARGE)
    if settings.hidden % settings.heads:
        raise UsageError(f"tiny.hidden = {settings.hidden} is no multiple of tiny.heads = {settings.heads}")


def _some(name: str, values: object) -> None:
    if not isinstance(values, tuple) or not values:
        raise UsageError(f"{name} must be a list with at least one entry, got {values!r}")
