"""Whether a plan can be built with a tokenizer, known before any model loads."""

from __future__ import annotations

from functools import lru_cache

from lm_audit.audits.needle.grid.plans import Plan
from lm_audit.audits.needle.haystack.sources import NOISE
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.token_offsets import Encoder
from lm_audit.audits.needle.samples.building import TooShort, build_sample
from lm_audit.audits.needle.samples.frame import frame_of
from lm_audit.models.text.tokenizer import Tokenizer

_LONG = 4096
"""Tokens in which every task finds room; a prompt of this length is no longer made for trial."""


def smallest_length(plan: Plan | None, tokenizer: Tokenizer) -> int:
    """The least length with room for the plan's task, 0 where all its lengths have; raises what its template would."""
    if plan is None or plan.config is None:
        return 0
    config = plan.config
    try:
        build_sample(
            _short_haystack(tokenizer),
            length=min(plan.lengths[0], _LONG + config.tokens_to_generate),
            depth=50.0,
            needle=config.task,
            seed=config.random_seed,
            options=config.options,
        )
    except TooShort as error:
        return error.smallest
    return 0


def thought_room(plan: Plan, tokenizer: Tokenizer, thinking_tokens: int | None) -> int:
    """Tokens of the thought that the plan's template opens; 0 where it opens none, or a folder's samples say it."""
    config = plan.config
    if config is None:
        return 0
    frame = frame_of(config.template, tokenizer, config.chat_args, thinking=config.thinking)
    return 0 if frame.opened is None else thinking_tokens or 0


@lru_cache(maxsize=4)
def _short_haystack(tokenizer: Tokenizer) -> Haystack:
    return Haystack(NOISE, Encoder(tokenizer))
