"""The haystack that a configuration names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lm_audit.audits.needle.haystack.sources import distractors
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.token_offsets import Encoder
from lm_audit.audits.needle.samples.config import NeedleConfig
from lm_audit.models.text.tokenizer import Tokenizer

_MOST = 400_000


def haystack_of(config: NeedleConfig, tokenizer: Tokenizer) -> Haystack:
    """The grid's haystack, tokenised. Distractor needles are made once, more than the longest prompt holds."""
    encoder = Encoder(tokenizer)
    lines = False if config.remove_newline_tab else None
    if config.type_haystack == "needle":
        found = distractors(
            _distractor_count(config, encoder),
            config.type_needle_k,
            config.type_needle_v,
            config.random_seed,
            config.language,
        )
        haystack = Haystack(found, encoder, lines=lines)
    elif config.haystack:
        haystack = Haystack(Path(config.haystack), encoder, lines=lines)
    else:
        return _embedded(config.type_haystack, tokenizer, lines)
    _ = haystack.token_starts
    return haystack


@lru_cache(maxsize=4)
def _embedded(kind: str, tokenizer: Tokenizer, lines: bool | None) -> Haystack:
    """A text of this package, which stays the same: tokenised once for all grids of a tokenizer."""
    haystack = Haystack(kind, tokenizer, lines=lines)
    _ = haystack.token_starts
    return haystack


def _distractor_count(config: NeedleConfig, encoder: Encoder) -> int:
    """Half as many again as the longest prompt takes, so that windows differ."""
    few = distractors(20, config.type_needle_k, config.type_needle_v, config.random_seed, config.language)
    each = encoder.count(few.text) / 20
    return min(_MOST, int(1.5 * max(config.lengths) / each) + 20)
