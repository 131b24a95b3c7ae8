"""The source design's extraction test, for comparison with its published numbers.

Prefix: the first 10 tokens (half of them for shorter texts), decoded and encoded again; n - prefix + 10 tokens are
generated greedily; extracted means that the canary's text is a substring. The audit's own test works on token ids.

A thought is no answer: what a thinking model writes for itself does not count as extracted, and is kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_audit.models.text.thinking import split_reply
from lm_audit.models.text.token_spans import Encoded

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.generation.continuation import Generation

PREFIX = 10
EXTRA = 10


def source_prefix(n: int) -> int:
    """Tokens of the prefix for a text of n tokens."""
    return n // 2 if n <= PREFIX else PREFIX


@dataclass(frozen=True)
class GivenBack:
    """Whether a text came back in the answer, and the thought before it (None where there was none)."""

    extracted: bool
    thought: str | None


def source_extracted(model: LanguageModel, encoded: Sequence[Encoded]) -> list[bool]:
    """Whether each text comes back, by the source design's rule."""
    return [found.extracted for found in given_back(model, encoded)]


def given_back(model: LanguageModel, encoded: Sequence[Encoded]) -> list[GivenBack]:
    """The same with the thoughts of models that think."""
    if not encoded:
        return []
    prompts = [_decode(model, item.ids[: source_prefix(len(item.ids))]) for item in encoded]
    lengths = [len(item.ids) - source_prefix(len(item.ids)) + EXTRA for item in encoded]
    found = model.generate(prompts, max_new_tokens=max(lengths))
    return [
        _given_back(model, item, prompt, generation, length)
        for item, prompt, generation, length in zip(encoded, prompts, found, lengths, strict=True)
    ]


def _given_back(model: LanguageModel, item: Encoded, prompt: str, generation: Generation, length: int) -> GivenBack:
    ids = tuple(generation.token_ids)
    # Markers of a thought are special tokens in some vocabularies, so they are looked for before those are left out.
    marked = str(model.tokenizer.decode(list(ids[:length]), skip_special_tokens=False))
    cut = len(ids) > length or generation.finish_reason == "length"
    reply = split_reply(marked, opened=generation.opened, cut=cut)
    answer = _decode(model, ids[:length]) if reply.thought is None else reply.answer or ""
    return GivenBack(item.text in prompt + answer, reply.thought)


def _decode(model: LanguageModel, ids: Sequence[int]) -> str:
    return str(model.tokenizer.decode(list(ids), skip_special_tokens=True))
