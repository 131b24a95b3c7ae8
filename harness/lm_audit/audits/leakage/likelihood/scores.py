"""Likelihood of a text under the model: Min-K%, Min-K%++, perplexity, n-gram accuracy; all from one forward pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lm_audit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring.results import TokenScores

Rounding = Literal["ceil", "floor"]
Text = str | tuple[str, str]
"""A text, or a question and its answer, which are joined by one space."""

STD_FLOOR = 1e-8
"""Lower limit of the spread that Min-K%++ divides by: a certain prediction has none."""


def min_k(logprobs: Sequence[float], k: float = 0.2, *, rounding: Rounding = "ceil") -> float | None:
    """The mean of the lowest share ``k`` of the token log-probabilities (nats), at least one token; None for no token.

    Higher is more member-like. ``k`` is in (0, 1]; the number of tokens is rounded up, or down with "floor". Raises
    ``UsageError`` for another k or rounding. Source: Shi et al. 2024, Detecting pretraining data.
    """
    if not 0 < k <= 1:
        raise UsageError(f"k is {k}; the share of tokens must be above 0 and at most 1")
    if rounding not in ("ceil", "floor"):
        raise UsageError(f"rounding {rounding!r}; it is 'ceil' or 'floor'")
    values = np.sort(np.asarray(logprobs, dtype=np.float64))
    if not len(values):
        return None
    # The decimal that was written, so that 0.29 of 100 is 29 and not 28.999.
    exact = Fraction(repr(float(k))) * len(values)
    count = max(1, math.ceil(exact) if rounding == "ceil" else math.floor(exact))
    return float(values[:count].mean())


def min_k_plus(scores: TokenScores, k: float = 0.2, *, rounding: Rounding = "ceil") -> float | None:
    """Min-K%++ (Zhang et al. 2024): Min-K% of log-probabilities standardised by each position's own distribution.

    ``scores`` must come with ``stats=True``; raises ``UsageError`` otherwise. In standard deviations.
    """
    if scores.mean_logprob is None or scores.std_logprob is None:
        raise UsageError("Min-K%++ needs token scores with stats=True")
    z = (scores.logprobs - scores.mean_logprob) / np.maximum(scores.std_logprob, STD_FLOOR)
    return min_k(z.tolist(), k, rounding=rounding)


def start_points(tokens: int, n: int = 5, starts: int = 5, *, longest: int | None = None) -> list[int] | None:
    """Evenly spread places (tokens before them) at which n tokens are to be predicted, as the source has them.

    From 2 to min(tokens, longest) - n, rounded down; places may repeat in a short text. None for one that is too
    short. Source: Xu et al. 2024, Benbench.
    """
    last = (tokens if longest is None else min(tokens, longest)) - n
    return [int(place) for place in np.linspace(2, last, starts)] if last >= 2 else None


def ngram_accuracy(
    model: LanguageModel, texts: Iterable[Text], n: int = 5, starts: int = 5, *, published: bool = False
) -> pd.DataFrame:
    """A table with one row a text: how often greedy decoding would reproduce n tokens at fixed places.

    ``text`` (its number), ``n_tokens``, ``starts``, ``hits`` (a bool a place), ``accuracy`` (their mean),
    ``mean_logprob`` (nats a token), ``perplexity``, ``min_k20``, ``min_k20_plus``, ``tokens_scored``, ``skipped`` (why
    there is no accuracy, else None). One forward pass a text: greedy decoding gives n tokens exactly where all have
    rank 0. A place counts once; with ``published`` as often as the source's rule names it. A text longer than the model
    reads is cut at its window. A pair is joined by one space.
    """
    import pandas as pd

    window = model.context_window
    joined = [text if isinstance(text, str) else " ".join(text) for text in texts]
    encoded = model.tokenizer(joined, add_special_tokens=False)["input_ids"] if joined else []
    ids = [tokens[: window - 1] if window else tokens for tokens in encoded]
    scored = model.loglikelihood([([], tokens) for tokens in ids], stats=True)
    rows = [
        _row(number, len(whole), tokens, scores, start_points(len(whole), n, starts, longest=window), n, published)
        for number, (whole, tokens, scores) in enumerate(zip(encoded, ids, scored, strict=True))
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COLUMNS = (
    "text",
    "n_tokens",
    "starts",
    "hits",
    "accuracy",
    "mean_logprob",
    "perplexity",
    "min_k20",
    "min_k20_plus",
    "tokens_scored",
    "skipped",
)


def _row(
    number: int, size: int, ids: Sequence[int], scores: TokenScores, places: list[int] | None, n: int, published: bool
) -> dict[str, Any]:
    mean = float(scores.logprobs.mean()) if len(scores) else None
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    row.update({"text": number, "n_tokens": size, "mean_logprob": mean, "tokens_scored": len(scores)})
    row["perplexity"] = None if mean is None else _perplexity(mean)
    row["min_k20"], row["min_k20_plus"] = min_k(scores.logprobs.tolist()), min_k_plus(scores)
    if places is None:
        return row | {"skipped": f"{size} tokens; {n} after a place that 2 tokens precede need {n + 2}"}
    kept = places if published else sorted(set(places))
    unscored = len(ids) - len(scores)
    hits = [not scores.ranks[place - unscored : place - unscored + n].any() for place in kept]
    return row | {"starts": kept, "hits": hits, "accuracy": sum(hits) / len(hits)}


def _perplexity(mean_logprob: float) -> float | None:
    return math.exp(-mean_logprob) if mean_logprob > -700 else None
