"""The source design's eleven metrics, as its code computes them, under its names and in its order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.evidence.metric_sources import PER_CANARY
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.stats.ranking.scores import auc_of, average_precision_of

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
GroupStatistic = Callable[[Floats, Floats], Floats]

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
    if min(len(members), len(documents)) < (2 if name.endswith("AUC") else 1):
        return None
    sides = (np.asarray(table["mean_logprob"], dtype=np.float64)[None] for table in (members, documents))
    return float(GROUP_STATISTICS[name](*sides)[0])


def _mia_gap(positive: Floats, negative: Floats) -> Floats:
    gap: Floats = positive.mean(axis=1) - negative.mean(axis=1)
    return gap


def _ppl_ratio(positive: Floats, negative: Floats) -> Floats:
    ratio: Floats = np.exp(-positive).mean(axis=1) / np.exp(-negative).mean(axis=1)
    return ratio


GROUP_STATISTICS: Mapping[str, GroupStatistic] = {
    "MIA_Gap": _mia_gap,
    "PPL_Ratio": _ppl_ratio,
    "ROC_AUC": auc_of,
    "PR_AUC": average_precision_of,
}
"""Metric -> statistic of mean log-probabilities [resamples, canaries] and [resamples, documents], one value a
resample.
"""


def _mean(table: pd.DataFrame, column: str) -> float | None:
    if column not in table or not len(table):
        return None
    value = float(np.asarray(table[column], dtype=np.float64).mean())
    return value if np.isfinite(value) else None
