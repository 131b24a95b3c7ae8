"""Per-token scores of whole texts, all from one call of the scoring engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import DataError
from lm_audit.models.text.token_spans import Encoded, Span, encode_texts

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring import Bos

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextScores:
    """Scores of the tokens of one text, in nats; the first token is missing where nothing precedes it.

    ``first`` is the index (in ``encoded.ids``) of the first scored token; ``mean`` and ``std`` are those of the log
    probabilities over the vocabulary, weighted by probability, which Min-K%++ needs.
    """

    encoded: Encoded
    first: int
    logprobs: Floats
    ranks: NDArray[np.int64]
    entropy: Floats
    mean: Floats
    std: Floats

    def select(self, span: Span | None) -> TextScores:
        """The scores of the tokens that overlap ``span`` (all tokens for None)."""
        if span is None:
            return self
        kept = [i - self.first for i in self.encoded.tokens_in(span) if i >= self.first]
        parts = (getattr(self, name)[kept] for name in ("logprobs", "ranks", "entropy", "mean", "std"))
        return TextScores(self.encoded, self.first, *parts)

    def greedy_from(self, position: int) -> int:
        """How many tokens from index ``position`` on greedy decoding would give back, before the first miss.

        Teacher-forced arg-max and greedy decoding agree up to the first miss, so this needs no generation.
        """
        ranks = self.ranks[position - self.first :]
        misses = np.flatnonzero(ranks > 0)
        return int(misses[0]) if len(misses) else len(ranks)


def score_tokens(model: LanguageModel, texts: Sequence[str], *, bos: Bos = "default") -> list[TextScores]:
    """One ``TextScores`` a text, in order; every distinct text is scored once. ``bos``: see :func:`score_texts`.

    Raises ``DataError`` for a text without any scored token.
    """
    distinct = list(dict.fromkeys(texts))
    encoded = encode_texts(model.tokenizer, distinct)
    requests = [((), item.ids) for item in encoded]
    answers = model.loglikelihood(requests, bos=bos, stats=True)
    scored = {item.text: _aligned(item, answer) for item, answer in zip(encoded, answers, strict=True)}
    return [scored[text] for text in texts]


def _aligned(item: Encoded, answer: object) -> TextScores:
    logprobs = np.asarray(answer.logprobs, dtype=np.float64)  # type: ignore[attr-defined]
    if not len(logprobs):
        raise DataError(f"this text has {len(item.ids)} token(s), none of which can be scored: {item.text[:60]!r}")
    parts = (np.asarray(getattr(answer, f), dtype=np.float64) for f in ("entropy", "mean_logprob", "std_logprob"))
    ranks = np.asarray(answer.ranks, dtype=np.int64)  # type: ignore[attr-defined]
    return TextScores(item, len(item.ids) - len(logprobs), logprobs, ranks, *parts)
