"""Whether a plan can be built with a tokenizer, known before any model loads."""

from __future__ import annotations

from functools import lru_cache

from lm_audit.audits.needle.grid.plans import Plan
from lm_audit.audits.needle.haystack.sources import NOISE
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.token_offsets import Encoder
from lm_audit.audits.needle.samples.building import TooShort, build_sample
from lm_audit.models.text.tokenizer import Tokenizer

_LONG = 4096
"""Tokens in which every task finds room; a prompt of this length is no longer made for trial."""


def check_feasible(plan: Plan | None, tokenizer: Tokenizer) -> int:
    """The least of the lengths with room for the plan's task, 0 where all have; raises what its template would raise.

    A length that the user named must have room: ``TooShort`` else.
    """
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
        if plan.asked:
            raise
        return error.smallest
    return 0


def too_short(plan: Plan | None, tokenizer: Tokenizer, length: int) -> str | None:
    """Why the task has no room in a length of the size's own; ``None`` where it has.

    Raises what the plan's template would raise, and ``TooShort`` for a length without room that the user named.
    """
    try:
        smallest = check_feasible(plan, tokenizer)
    except TooShort as error:
        if length < error.smallest:
            raise TooShort(length, error.smallest) from error
        return None
    if length >= smallest:
        return None
    return f"length {length} has no room for the task with this tokenizer, which needs {smallest} tokens"


@lru_cache(maxsize=4)
def _short_haystack(tokenizer: Tokenizer) -> Haystack:
    return Haystack(NOISE, Encoder(tokenizer))
