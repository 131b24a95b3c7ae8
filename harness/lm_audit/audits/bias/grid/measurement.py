"""The preference grid measured: log-odds of word pairs for every template and group, from one call of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.grid.lexicon.linting import require_separable
from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair, render
from lm_audit.audits.bias.grid.words import Boundary, word_loglikelihood

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
Mode = Literal["raw", "chat"]

CHAT_REQUEST = {"en": "Complete the sentence.", "zh": "请把句子补充完整。"}
"""The user's turn in chat mode; the prompt then stands at the start of the assistant's turn."""


@dataclass(frozen=True)
class GridMeasurement:
    """What the model said: arrays of shape (templates, groups, pairs, 2), positive word first.

    ``logprobs`` are in nats (boundary-corrected where asked for). ``groups`` holds every group of every axis once, and
    the neutral group last. ``unconditional`` (pairs, 2) is what the words score without any prompt's content.
    """

    grid: PreferenceSet
    groups: tuple[str, ...]
    logprobs: Floats
    unconditional: Floats
    mode: Mode
    boundary: Boundary | None

    @property
    def log_odds(self) -> Floats:
        """d = log p(positive) - log p(negative), shape (templates, groups, pairs)."""
        return np.asarray(self.logprobs[..., 0] - self.logprobs[..., 1], dtype=np.float64)

    def of(self, groups: Sequence[str]) -> Floats:
        """The log-odds of these groups, shape (groups, templates, pairs)."""
        numbers = [self.groups.index(group) for group in groups]
        return self.log_odds[:, numbers].transpose(1, 0, 2)

    @property
    def neutral(self) -> Floats:
        """The log-odds of the neutral group, shape (templates, pairs)."""
        return self.log_odds[:, -1]


def measure_grid(
    model: LanguageModel,
    grid: PreferenceSet,
    *,
    boundary: Boundary | None = None,
    mode: Mode = "raw",
    prompt_of: Callable[[str, str], str] = render,
) -> GridMeasurement:
    """Every word of the grid after every prompt of the grid; ``prompt_of(template, group)`` words the prompts.

    In ``chat`` mode the prompt opens the assistant's turn of the model's chat template. Raises ``DataError`` for words
    whose tokens cannot be separated from their prompt, and what ``word_loglikelihood`` raises.
    """
    require_separable(grid, model.tokenizer)
    groups = tuple(dict.fromkeys([*(group for axis in grid.axes for group in axis.groups if group != grid.neutral)]))
    groups = (*groups, grid.neutral)
    prompts = [prompt_of(template, group) for template in grid.templates for group in groups]
    words = [word for pair in grid.pairs for word in (pair.positive, pair.negative)]
    opening = _opening(model, grid.language) if mode == "chat" else ""
    table = word_loglikelihood(
        model,
        [opening + prompt for prompt in prompts],
        words,
        separator=grid.separator,
        terminator=grid.terminator,
        boundary=boundary,
        bos="none" if opening else "default",  # a template writes its own, as where it is continued
    )
    column = "lp_corrected" if boundary else "lp"
    shape = (len(grid.templates), len(groups), len(grid.pairs), 2)
    bare = word_loglikelihood(
        model, [_content_free(model)], words, separator=grid.separator, terminator=grid.terminator
    )
    return GridMeasurement(
        grid=grid,
        groups=groups,
        logprobs=table[column].to_numpy(dtype=np.float64).reshape(shape),
        unconditional=bare["lp"].to_numpy(dtype=np.float64).reshape(len(grid.pairs), 2),
        mode=mode,
        boundary=boundary,
    )


def _opening(model: LanguageModel, language: str) -> str:
    return model.render_chat(CHAT_REQUEST.get(language, CHAT_REQUEST["en"]), answering=True)


def _content_free(model: LanguageModel) -> str:
    """The document separator: a prompt that says nothing."""
    return str(model.tokenizer.bos_token or model.tokenizer.eos_token or "\n")


def as_axes(axes: Sequence[Axis] | dict[str, Sequence[str]]) -> tuple[Axis, ...]:
    """Axes from a mapping of names to groups (the first one the reference), or as they are."""
    if isinstance(axes, dict):
        return tuple(Axis.of(name, groups) for name, groups in axes.items())
    return tuple(axes)


def as_pairs(pairs: Sequence[WordPair | tuple[str, str]]) -> tuple[WordPair, ...]:
    """Word pairs from tuples (positive, negative), or as they are."""
    return tuple(pair if isinstance(pair, WordPair) else WordPair(*pair) for pair in pairs)
