"""Option names: each has the prefix ``--lm-audit-``; the short one comes where somebody asks for it.

An installed plugin must not take ``--model`` or ``--device`` from the conftest of a repository that has its own.
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from typing import Any

import pytest

PREFIX = "--lm-audit-"
SHORT_GROUP = "lm-audit-short"


@dataclass(frozen=True)
class DeclaredOption:
    """An option of the plugin by its short flag, with what argparse is told of it."""

    flag: str
    arguments: dict[str, Any]

    @property
    def long_flag(self) -> str:
        """``--lm-audit-model`` for ``--model``."""
        return PREFIX + self.flag.removeprefix("--")


_DECLARED: dict[str, DeclaredOption] = {}
"""By flag, of this process. Every call of pytest declares the same ones."""


def declare(group: pytest.OptionGroup, flag: str, *, dest: str, **arguments: object) -> None:
    """Add ``--lm-audit-FLAG`` to ``group``, and keep ``--FLAG`` for :func:`add_short_names`."""
    option = DeclaredOption(flag, {"dest": dest, **arguments})
    _DECLARED[flag] = option
    group.addoption(option.long_flag, **option.arguments)


def add_short_names(parser: pytest.Parser) -> None:
    """Add the short names of all declared options, leaving out those that somebody else has taken."""
    group = parser.getgroup(SHORT_GROUP, "audits of language models, short names")
    for option in _DECLARED.values():
        more = option.arguments | {"help": f"short for {option.long_flag}"}
        with contextlib.suppress(ValueError, argparse.ArgumentError):
            group.addoption(option.flag, **more)


def declared() -> tuple[DeclaredOption, ...]:
    """All options, in the order in which they were declared."""
    return tuple(_DECLARED.values())


def flags() -> tuple[str, ...]:
    """The short names of all declared options, whether or not somebody asked for them."""
    return tuple(_DECLARED)


def left_out(value: object) -> bool:
    """Whether a value of an option says that nobody gave it; 0 is a value, though it equals ``False``."""
    return value is None or value is False or value == []


def given(config: pytest.Config) -> bool:
    """Whether the caller set any option of the plugin."""
    return any(is_given(config, flag) for flag in _DECLARED)


def is_given(config: pytest.Config, flag: str) -> bool:
    """Whether the caller set an option to something else than what it has where nobody gives it."""
    arguments = _DECLARED[flag].arguments
    value = vars(config.option).get(arguments["dest"])
    return not left_out(value) and value != arguments.get("default")
