"""The options that the steps of ``lm-audit privacy`` share, and the config they describe."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.errors import DataError, UsageError
from lm_audit.shared.given_path import given_path
from lm_audit.shared.number_checks import filled, real_number, seed_number, whole_number
from lm_audit.shared.textfiles import is_file, read_json_object
from lm_audit.shared.textfiles.outputs import check_output_file, check_output_folder

if TYPE_CHECKING:
    from lm_audit.audits.privacy.stages.config import StagesConfig

SIMPLE: dict[str, Callable[[str], Any]] = {
    "model": filled,
    "seed": seed_number(),
    "family": filled,
    "members": whole_number(1),
    "controls": whole_number(0),
    "assignment": filled,
    "documents": whole_number(1),
    "documents_path": given_path,
    "decoys": whole_number(0),
    "pairs": whole_number(1),
    "pairs_per_canary": whole_number(1),
    "pair_style": filled,
    "beta": real_number(above=0),
    "trainer": filled,
    "device": filled,
}
"""Options that set a field of StagesConfig of the same name."""
HELP = {
    "model": "what stage 0 is, a model spec",
    "seed": "of canaries, corpus and training",
    "family": "form of the secrets: rare, struct, phrase, sequence, code, tokens or sentence",
    "members": "canaries that are trained on",
    "controls": "held-out twins, which are not",
    "assignment": "fixed (so many members), or coins (each canary by a fair coin: what epsilon needs)",
    "documents": "ordinary texts of the corpus, drawn from those there are",
    "documents_path": "texts of your own: a file, a folder or a hub id",
    "decoys": "ordinary texts in the canaries' form with other codes, among made-up documents only",
    "pairs": "ordinary preference pairs",
    "pairs_per_canary": "preference pairs of each member",
    "pair_style": "what such a pair prefers: secret (the true one to another), or source (as the source design has it)",
    "beta": "of DPO",
    "trainer": "own (the project's loop), or trl",
    "device": "where training and scoring run",
}
"""What each says in ``--help``, which adds the default."""


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add them to one step."""
    parser.add_argument(
        "--output", type=given_path, metavar="FOLDER", help="where everything goes (default: the cache)"
    )
    parser.add_argument("--config", type=given_path, metavar="FILE", help="a JSON file with fields of the config")
    parser.add_argument("--smoke", action="store_true", help="start from the tiny configuration of a few seconds")
    usual = _defaults()
    for name, kind in SIMPLE.items():
        flags = ["--" + name.replace("_", "-")] + (["--num-canaries"] if name == "members" else [])
        told = f"{HELP[name]} ({'none' if usual[name] is None else usual[name]})"
        parser.add_argument(*flags, dest=name, type=kind, default=None, metavar=name.upper(), help=told)
    parser.add_argument("--repetitions", default=None, metavar="1,4,16", help="levels that the members are spread over")
    parser.add_argument("--sft", default=None, metavar="epochs=3,lr=2e-3", help="settings of the SFT stage")
    parser.add_argument("--dpo", default=None, metavar="epochs=1,lr=1e-4", help="settings of both DPO stages")
    parser.add_argument("--lora", default=None, metavar="r=32,alpha=16", help="train adapters instead of all weights")
    parser.add_argument(
        "--epsilon",
        type=real_number(above=0, infinite=True),
        default=None,
        help="train SFT with DP-SGD (inf: without noise)",
    )


def _defaults() -> dict[str, Any]:
    from lm_audit.audits.privacy.stages.config import StagesConfig

    return {field.name: field.default for field in fields(StagesConfig)}


def config_of(args: argparse.Namespace) -> StagesConfig:
    """The config: that of the folder if it holds one, else the file's or the defaults; given options on top.

    Raises ``UsageError`` for an unknown field or a value that cannot be read.
    """
    if args.output is not None:
        check_output_folder(args.output, "--output")
    if getattr(args, "text", None) is not None:
        check_output_file(args.text, "--text")
    start = _start(args)
    changes: dict[str, Any] = {name: getattr(args, name) for name in SIMPLE if getattr(args, name) is not None}
    if args.repetitions is not None:
        changes["repetitions"] = tuple(seed_list(args.repetitions))
    changes |= _nested(args, start)
    return replace(start, **changes, output=args.output or start.output)


def _start(args: argparse.Namespace) -> StagesConfig:
    from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config

    known = args.output / "config.json" if args.output else None
    if args.config and args.smoke:
        raise UsageError("--config and --smoke are two configurations to start from; leave one out")
    path = args.config or (known if known and is_file(known) else None)
    if path is not None:
        return StagesConfig.from_json(_read(path), output=args.output)
    return smoke_config(output=args.output) if args.smoke else StagesConfig(output=args.output)


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except DataError as error:
        raise UsageError(f"--config cannot be read: {error}") from error


def _nested(args: argparse.Namespace, start: StagesConfig) -> dict[str, Any]:
    from lm_audit.audits.privacy.stages.config import DpSettings, LoraSettings

    changes: dict[str, Any] = {}
    for name in ("sft", "dpo"):
        if getattr(args, name) is not None:
            changes[name] = _settings(getattr(start, name), getattr(args, name), f"--{name}")
    if args.lora is not None:
        changes["lora"] = _settings(start.lora or LoraSettings(), args.lora, "--lora")
    if args.epsilon is not None:
        changes["dp"] = DpSettings(args.epsilon)
    return changes


def _settings(start: Any, text: str, flag: str) -> Any:
    """``key=value,key=value`` on top of a settings dataclass."""
    known = {field.name for field in fields(start)}
    changes: dict[str, Any] = {}
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if key in changes:
            raise UsageError(f"{flag} {part!r}: {key} is given twice")
        if not separator or key not in known:
            raise UsageError(f"{flag} {part!r}: write KEY=VALUE with one of {', '.join(sorted(known))}")
        changes[key] = _value(getattr(start, key), value, f"{flag} {part!r}")
    return replace(start, **changes)


def _value(like: object, text: str, where: str) -> Any:
    if isinstance(like, tuple):
        return tuple(text.split("+"))
    try:
        return whole_number(0)(text) if isinstance(like, int) else real_number()(text)
    except ArgumentTypeError as error:
        raise UsageError(f"{where}: {error}") from error


def seed_list(text: str) -> list[int]:
    """``0,1,2`` as numbers; ``UsageError`` for anything else and for a number given twice."""
    try:
        numbers = [whole_number(0)(part) for part in text.split(",")]
    except ArgumentTypeError as error:
        raise UsageError(f"{text!r:.80}: write whole numbers with commas, for example 0,1,2 ({error})") from error
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        raise UsageError(f"{text!r:.80}: {twice} is given twice")
    return numbers


def for_seed(config: StagesConfig, seed: int) -> StagesConfig:
    """The config of one seed, in a folder of its own."""
    return replace(config, seed=seed, output=config.output / f"seed-{seed}" if config.output else None)
