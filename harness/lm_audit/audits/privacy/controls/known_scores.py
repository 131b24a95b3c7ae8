"""A control whose scores are known on paper, those of :mod:`lm_audit.audits.privacy.controls.bigrams`.

Whatever reads the wrong token, the wrong text or the wrong sign gives other numbers; nothing here is random but the
model's two matrices. What the audit reports of texts by their log-probabilities alone, of ranks among all secrets, of
known replies and of several seeds is held beside it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.controls.bigrams import Paper, bigram_model
from lm_audit.audits.privacy.controls.known_extraction import wrong_of_known_extraction
from lm_audit.audits.privacy.controls.known_members import wrong_of_known_members, wrong_of_known_ranks
from lm_audit.audits.privacy.controls.known_replies import wrong_of_known_replies, wrong_of_known_thoughts
from lm_audit.audits.privacy.controls.known_seeds import wrong_of_known_seeds, wrong_power
from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.second_opinion import found_wrong, held_by_its_rows
from lm_audit.evidence import Control, Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
CANARIES = 24
TOLERANCE = 1e-4
"""Nats a token; scores in float32 come within 1e-6 of the formula."""

COLUMNS = (
    "mean_logprob",
    "span_mean_logprob",
    "min_k20_ceil",
    "span_min_k20_ceil",
    "min_kpp20_ceil",
    "span_min_kpp20_ceil",
    "mean_entropy_scored",
    "zlib_ratio_mean_nll",
    "lowercase_log_ratio",
)
"""Ranks are left out: two logits that are equal to seven digits may change places between processors."""


def known_scores(seed: int = 0) -> Evidence:
    """Positive control: the scores of 24 canaries equal the formula, one by one, and what is told of known answers is
    so."""
    from lm_audit.audits.privacy.measure.scores import score_texts

    model = bigram_model(seed)
    canaries = generate_canaries(CANARIES, seed=seed)
    table = score_texts(model, [c.text for c in canaries], spans=[c.secret_span for c in canaries])
    evidence = judge_scores(table, expected_scores(model, canaries))
    return held_by_its_rows(evidence, also=_wrong_of_known(model, seed), counts=[({}, CANARIES)])


def _wrong_of_known(model: LanguageModel, seed: int) -> list[str]:
    """What is reported of answers that are known beforehand, the model's and made ones, and is not so."""
    paper = Paper.of(model)
    return [
        *found_wrong("texts scored alone", lambda: wrong_of_known_members(paper, seed)),
        *found_wrong("ranks among all secrets", lambda: wrong_of_known_ranks(paper, seed)),
        *found_wrong("replies known beforehand", wrong_of_known_replies),
        *found_wrong("continuations known beforehand", wrong_of_known_extraction),
        *found_wrong("thoughts known beforehand", wrong_of_known_thoughts),
        *found_wrong("seeds known beforehand", wrong_of_known_seeds),
        *found_wrong("the power of a design", wrong_power),
    ]


def expected_scores(model: LanguageModel, canaries: Sequence[Canary]) -> dict[str, Floats]:
    """The columns by the formula, in float64."""
    paper = Paper.of(model)
    rows = [_row(paper, canary) for canary in canaries]
    return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def _row(paper: Paper, canary: Canary) -> dict[str, float]:
    logprobs, spread = paper.choices(canary.text)
    span = slice(*canary.secret_span)
    row = _columns("", logprobs) | _columns("span_", logprobs[span])
    lowered = paper.tokens(canary.text.lower())
    size = len(zlib.compress(canary.text.encode()))
    return row | {
        "min_kpp20_ceil": _unlikely(logprobs, spread),
        "span_min_kpp20_ceil": _unlikely(logprobs[span], spread[:, span]),
        "mean_entropy_scored": float(-spread[0].mean()),
        "zlib_ratio_mean_nll": -row["mean_logprob"] / size,
        "lowercase_log_ratio": row["mean_logprob"] / float(lowered.mean()),
    }


def _columns(prefix: str, logprobs: Floats) -> dict[str, float]:
    return {f"{prefix}mean_logprob": float(logprobs.mean()), f"{prefix}min_k20_ceil": _lowest(logprobs)}


def _unlikely(logprobs: Floats, spread: Floats) -> float:
    """How far below the mean, in standard deviations of what stood to be chosen, the lowest fifth lies."""
    return _lowest((logprobs - spread[0]) / spread[1])


def _lowest(values: Floats) -> float:
    return float(np.sort(values)[: -(-len(values) // 5)].mean())


def judge_scores(table: pd.DataFrame, expected: dict[str, Floats]) -> Evidence:
    """Passed where no column of any canary is off by more than 1e-4."""
    errors = {name: np.abs(np.asarray(table[name], dtype=np.float64) - truth) for name, truth in expected.items()}
    errors = {name: np.nan_to_num(found, nan=1e308, posinf=1e308) for name, found in errors.items()}
    worst = max(errors, key=lambda name: float(errors[name].max()))
    each = np.max(list(errors.values()), axis=0)
    error = float(each.max())
    evidence = Evidence("privacy", headline="privacy.control_error", parameters={"canaries": len(table)})
    method = "largest error of a canary's score against the formula"
    estimate = Estimate(error, n=len(table), confidence=None, method=method, unit="nats", better="lower")
    # One unit of all canaries, whose value is its largest row.
    evidence.extend_rows({"item": str(i), "model": "bigrams", "error": float(e)} for i, e in enumerate(each))
    source = MetricSource("mean", "error", unit=("model",), within="max")
    evidence.metric("privacy.control_error", estimate, source)
    evidence.control = Control(
        "positive",
        error <= TOLERANCE,
        f"scores of a model that is known on paper equal the formula to {TOLERANCE:g}",
        f"the largest error is {error:.3g}, in {worst}",
    )
    return evidence
