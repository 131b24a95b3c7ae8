"""Whether a plan can be built with a tokenizer, known before any model loads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lm_audit.audits.needle.building import build_sample
from lm_audit.audits.needle.haystack import Haystack
from lm_audit.audits.needle.plans import Plan
from lm_audit.audits.needle.sources import NOISE
from lm_audit.audits.needle.tokens import Encoder

_LONG = 4096
"""Tokens in which every task finds room; a prompt of this length is no longer made for trial."""


def check_feasible(plan: Plan | None, tokenizer: Any) -> None:
    """Raise what building the plan's shortest prompt would raise: for its template, its length, its wording."""
    if plan is None or plan.config is None:
        return
    config = plan.config
    build_sample(
        _short_haystack(tokenizer),
        length=min(plan.lengths[0], _LONG + config.tokens_to_generate),
        depth=50.0,
        needle=config.task,
        seed=config.random_seed,
        options=config.options,
    )


@lru_cache(maxsize=4)
def _short_haystack(tokenizer: Any) -> Haystack:
    return Haystack(NOISE, Encoder(tokenizer))
