"""The source design's eleven metrics, as its code computes them, under its names and in its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from harness.audits.privacy.stagescores import StageScores
from harness.stats import pr_auc, roc_auc

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "MIA_Gap",
    "Avg_LogProb",
    "Avg_Rank",
    "Canary_PPL",
    "PPL_Ratio",
    "Extraction_Rate",
    "Top5_Hit_Rate",
    "Top10_Hit_Rate",
    "Top50_Hit_Rate",
    "ROC_AUC",
    "PR_AUC",
)

PER_CANARY: Mapping[str, str] = {
    "Avg_LogProb": "mean_logprob",
    "Avg_Rank": "last_token_rank0",
    "Canary_PPL": "ppl",
    "Extraction_Rate": "source_extracted",
    "Top5_Hit_Rate": "top5",
    "Top10_Hit_Rate": "top10",
    "Top50_Hit_Rate": "top50",
}
"""Metrics that are a mean over canaries, and the column that holds a canary's value."""

GROUPED = ("MIA_Gap", "PPL_Ratio", "ROC_AUC", "PR_AUC")
"""Metrics of canaries against ordinary documents, which have no value a canary."""


def source_metrics(scores: StageScores) -> dict[str, float | None]:
    """The eleven values; None where not computable (no documents, no extraction test, fewer than two a class)."""
    members = scores.of("member")
    found: dict[str, float | None] = {}
    for name in COLUMNS:
        if name in PER_CANARY:
            found[name] = _mean(members, PER_CANARY[name])
        else:
            found[name] = grouped_metric(name, members, scores.documents)
    return found


def grouped_metric(name: str, members: pd.DataFrame, documents: pd.DataFrame) -> float | None:
    """One metric of canaries against documents: the negatives are ordinary text, so an AUC here is no membership
    test.
    """
    if not len(documents) or not len(members):
        return None
    positive, negative = np.asarray(members["mean_logprob"]), np.asarray(documents["mean_logprob"])
    return grouped_value(name, positive, negative)


def grouped_value(name: str, positive: np.ndarray, negative: np.ndarray) -> float | None:
    """The metric from mean log-probabilities of canaries and of documents."""
    if name == "MIA_Gap":
        return float(positive.mean() - negative.mean())
    if name == "PPL_Ratio":
        return float(np.exp(-positive).mean() / np.exp(-negative).mean())
    if min(len(positive), len(negative)) < 2:
        return None
    return (roc_auc if name == "ROC_AUC" else pr_auc)(positive, negative).value


def _mean(table: pd.DataFrame, column: str) -> float | None:
    if column not in table or not len(table):
        return None
    value = float(np.asarray(table[column], dtype=np.float64).mean())
    return value if np.isfinite(value) else None
