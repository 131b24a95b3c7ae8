"""What is asked for: the task of a needle sample, and the options that all samples of a grid share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lm_audit.errors import UsageError

SEAMS_FROM = 16_384
"""Prompts at least this long are measured by their seams where that is exact."""


@dataclass(frozen=True)
class NeedleTask:
    """What is hidden and asked for: types of keys and values, and how many keys, values a key, and keys asked for."""

    type_k: str = "words"
    type_v: str = "numbers"
    num_k: int = 1
    num_v: int = 1
    num_q: int = 1

    def __post_init__(self) -> None:
        for name in ("num_k", "num_v", "num_q"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; expected 1 or more")

    @property
    def keys(self) -> int:
        """Keys that are hidden: at least those that are asked for."""
        return max(self.num_k, self.num_q)


@dataclass(frozen=True)
class BuildOptions:
    """How prompts are made; see ``docs/needle.md``.

    ``chat_args`` are arguments of the chat template. Without ``thinking`` a thought that the template opens is closed.
    """

    template: str = "auto"
    chat_args: Mapping[str, Any] = field(default_factory=dict)
    thinking: bool = True
    tokens_to_generate: int = 128
    boundary: Literal["sentence", "word"] = "sentence"
    windows: Literal["independent", "shared", "start"] = "independent"
    other_depths: Literal["spread", "random"] = "spread"
    language: str = "en"
    one_line: bool = False
    planted: bool = True
    verify: Literal["auto", "whole"] = "auto"
    subset: str = "validation"

    def __post_init__(self) -> None:
        choices = {
            "boundary": ("sentence", "word"),
            "windows": ("independent", "shared", "start"),
            "other_depths": ("spread", "random"),
            "verify": ("auto", "whole"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(allowed)}")
        if self.tokens_to_generate < 0:
            raise UsageError(f"tokens to generate is {self.tokens_to_generate}; expected 0 or more")
