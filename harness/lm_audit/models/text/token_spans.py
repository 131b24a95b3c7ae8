"""Texts as token ids with the characters that each token covers: the one place that asks a tokenizer for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_audit.errors import ModelError
from lm_audit.models.text.tokenizer import Tokenizer

Span = tuple[int, int]


@dataclass(frozen=True)
class Encoded:
    """Token ids of a text, and for each token the half-open character range that it covers."""

    text: str
    ids: tuple[int, ...]
    offsets: tuple[Span, ...]

    def tokens_in(self, span: Span) -> list[int]:
        """Indices of the tokens that overlap the characters ``span``, wholly or in part."""
        start, end = span
        return [i for i, (a, b) in enumerate(self.offsets) if a < end and b > start]


def tells_offsets(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer says where its tokens stand; Python tokenizers do not."""
    return bool(getattr(tokenizer, "is_fast", False))


def encode_texts(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    special: bool = False,
    advice: str = "use a fast one (tokenizer.json)",
) -> list[Encoded]:
    """One ``Encoded`` a text, whole whatever its length; with ``special`` as the tokenizer frames a text.

    ``ModelError`` with ``advice`` for a tokenizer that does not tell where its tokens stand.
    """
    if not texts:
        return []
    try:
        found = tokenizer(
            list(texts),
            add_special_tokens=special,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            truncation=False,
            verbose=False,
        )
    except NotImplementedError as error:
        raise ModelError(f"this tokenizer does not tell where its tokens stand in a text; {advice}") from error
    pairs = zip(texts, found["input_ids"], found["offset_mapping"], strict=True)
    return [Encoded(text, tuple(ids), tuple((first, last) for first, last in offsets)) for text, ids, offsets in pairs]
