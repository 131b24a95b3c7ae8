"""Texts as token ids with the characters that each token covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.errors import ModelError

Span = tuple[int, int]


@dataclass(frozen=True)
class Encoded:
    """Token ids of a text without special tokens, and for each token the half-open character range it covers."""

    text: str
    ids: tuple[int, ...]
    offsets: tuple[Span, ...]

    def tokens_in(self, span: Span) -> list[int]:
        """Indices of the tokens that overlap the characters ``span``, wholly or in part."""
        start, end = span
        return [i for i, (a, b) in enumerate(self.offsets) if a < end and b > start]


def encode_texts(tokenizer: Any, texts: Sequence[str]) -> list[Encoded]:
    """One ``Encoded`` a text; ``ModelError`` for a tokenizer that cannot report character offsets."""
    if not texts:
        return []
    try:
        batch = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
    except NotImplementedError as error:
        raise ModelError("the privacy audit needs a fast tokenizer, which reports character offsets") from error
    pairs = zip(texts, batch["input_ids"], batch["offset_mapping"], strict=True)
    return [Encoded(text, tuple(ids), tuple((int(a), int(b)) for a, b in offsets)) for text, ids, offsets in pairs]
