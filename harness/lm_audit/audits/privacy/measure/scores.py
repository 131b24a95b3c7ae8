"""Membership scores of texts: one row a text, one call of the scoring engine."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.privacy.attribution.directions import RISK, oriented
from lm_audit.audits.privacy.measure.token_scores import Floats, TextScores, score_tokens
from lm_audit.errors import UsageError
from lm_audit.models.text.token_spans import Span

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring import Bos

MIN_K = 0.2
STD_FLOOR = 1e-8
"""Lower limit of the spread that Min-K%++ divides by: a certain prediction has none."""


def score_texts(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    spans: Sequence[Span | None] | None = None,
    bos: Bos = "default",
    reference: LanguageModel | pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A table with one row a text, in order, all columns from one call of the scoring engine.

    ``mean_logprob``, ``sum_logprob`` (nats), ``ppl``, ``mean_rank0``, ``last_token_rank0`` (0-based), ``top5``,
    ``top10``, ``top50`` (share of tokens), ``min_k20_ceil``, ``min_kpp20_ceil`` (mean of the lowest ceil(0.2 T)),
    ``zlib_bytes``, ``zlib_ratio_mean_nll`` (mean NLL over bytes of zlib), ``lowercase_log_ratio`` (log perplexity of
    the text over that of the lower-cased text), ``mean_entropy_scored`` (nats). With ``spans`` (characters, half
    open) ``span_*`` over the tokens that overlap them; with ``reference``, a model or its table of the same texts,
    ``calibrated_logprob`` and ``span_calibrated_logprob`` (this model minus the reference). ``<name>_score`` is
    oriented so that higher is more member-like. ``bos``: "default" as the tokenizer does, "none", or a token
    id; without one the first token is not scored. Raises ``UsageError`` where lengths differ, ``DataError`` for a
    text of one token.
    """
    spans = [None] * len(texts) if spans is None else list(spans)
    if len(spans) != len(texts):
        raise UsageError(f"{len(spans)} spans do not go with {len(texts)} texts")
    lowered = [text.lower() for text in texts]
    scored = score_tokens(model, [*texts, *lowered], bos=bos)
    table = tabulate(scored[: len(texts)], scored[len(texts) :], spans)
    if reference is not None:
        table = calibrate(table, _reference_table(reference, texts, spans, bos))
    return with_scores(table)


def tabulate(scored: Sequence[TextScores], lowered: Sequence[TextScores], spans: Sequence[Span | None]) -> pd.DataFrame:
    """The table of :func:`score_texts` without oriented columns, from token scores at hand."""
    import pandas as pd

    rows = [_row(whole, low, span) for whole, low, span in zip(scored, lowered, spans, strict=True)]
    return pd.DataFrame(rows)


def calibrate(table: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """The table with ``calibrated_logprob`` (and that of the span): its log-probabilities minus the reference's."""
    if list(table["text"]) != list(reference["text"]):
        raise UsageError("the reference table must hold the same texts in the same order")
    added = {"calibrated_logprob": table["mean_logprob"] - reference["mean_logprob"].to_numpy()}
    if "span_mean_logprob" in table and "span_mean_logprob" in reference:
        added["span_calibrated_logprob"] = table["span_mean_logprob"] - reference["span_mean_logprob"].to_numpy()
    return table.assign(**added)


def with_scores(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column ``<name>_score`` for every metric of known direction."""
    return table.assign(**{f"{name}_score": oriented(name, table[name]) for name in RISK if name in table})  # type: ignore[arg-type]


def _reference_table(
    reference: LanguageModel | pd.DataFrame, texts: Sequence[str], spans: Sequence[Span | None], bos: Bos
) -> pd.DataFrame:
    import pandas as pd

    if isinstance(reference, pd.DataFrame):
        return reference
    scored = score_tokens(reference, texts, bos=bos)
    return tabulate(scored, scored, spans)


def _row(whole: TextScores, lowered: TextScores, span: Span | None) -> dict[str, object]:
    text = whole.encoded.text
    size = len(zlib.compress(text.encode("utf-8", "surrogatepass")))
    row: dict[str, object] = {"text": text, "n_scored": len(whole.logprobs)} | _metrics(whole)
    mean = float(whole.logprobs.mean())
    row |= {"zlib_bytes": size, "zlib_ratio_mean_nll": -mean / size}
    row["lowercase_log_ratio"] = _ratio(mean, float(lowered.logprobs.mean()))
    if span is not None:
        row |= _span_metrics(whole.select(span))
    return row


def _metrics(scores: TextScores) -> dict[str, float | int]:
    ranks, mean = scores.ranks, float(scores.logprobs.mean())
    top = {f"top{k}": float((ranks < k).mean()) for k in (5, 10, 50)}
    return {
        "mean_logprob": mean,
        "sum_logprob": float(scores.logprobs.sum()),
        "ppl": _exp(-mean),
        "mean_rank0": float(ranks.mean()),
        "last_token_rank0": int(ranks[-1]),
        **top,
        "min_k20_ceil": lowest_mean(scores.logprobs),
        "min_kpp20_ceil": lowest_mean(standardised(scores)),
        "mean_entropy_scored": float(scores.entropy.mean()),
    }


def _span_metrics(scores: TextScores) -> dict[str, float | int]:
    names = ("mean_logprob", "sum_logprob", "mean_rank0", "min_k20_ceil", "min_kpp20_ceil")
    if not len(scores.logprobs):
        return {"span_n_scored": 0} | {f"span_{name}": math.nan for name in names}
    metrics = _metrics(scores)
    return {"span_n_scored": len(scores.logprobs)} | {f"span_{name}": metrics[name] for name in names}


def lowest_mean(values: Floats, share: float = MIN_K) -> float:
    """Mean of the lowest ``ceil(share T)`` values (at least one): Min-K% of log-probabilities, in their unit."""
    count = max(1, math.ceil(share * len(values) - 1e-9))
    return float(np.partition(values, count - 1)[:count].mean())


def standardised(scores: TextScores) -> Floats:
    """(log p - mean) / sd of each token under the vocabulary's distribution: what Min-K%++ averages (Zhang 2024)."""
    result: Floats = (scores.logprobs - scores.mean) / np.maximum(scores.std, STD_FLOOR)
    return result


def _ratio(mean: float, lowered: float) -> float:
    return mean / lowered if lowered else (1.0 if lowered == mean else math.nan)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
