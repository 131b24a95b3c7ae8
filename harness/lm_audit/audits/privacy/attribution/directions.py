"""Which direction means more risk: one table, used by code, figures and text."""

from __future__ import annotations

from collections.abc import Mapping

RISK: Mapping[str, int] = {
    # scores of single texts
    "mean_logprob": +1,
    "sum_logprob": +1,
    "ppl": -1,
    "mean_rank0": -1,
    "last_token_rank0": -1,
    "top5": +1,
    "top10": +1,
    "top50": +1,
    "min_k20_ceil": +1,
    "min_kpp20_ceil": +1,
    "zlib_ratio_mean_nll": -1,
    "lowercase_log_ratio": -1,
    "mean_entropy_scored": -1,
    "calibrated_logprob": +1,
    "span_mean_logprob": +1,
    "span_sum_logprob": +1,
    "span_mean_rank0": -1,
    "span_min_k20_ceil": +1,
    "span_min_kpp20_ceil": +1,
    "span_calibrated_logprob": +1,
    # scores that need log-probabilities alone, and the classifier that reads no model
    "secret_mean_logprob": +1,
    "text_alone": +1,
    # the source design's columns
    "MIA_Gap": +1,
    "Avg_LogProb": +1,
    "Avg_Rank": -1,
    "Canary_PPL": -1,
    "PPL_Ratio": -1,
    "Extraction_Rate": +1,
    "Top5_Hit_Rate": +1,
    "Top10_Hit_Rate": +1,
    "Top50_Hit_Rate": +1,
    "ROC_AUC": +1,
    "PR_AUC": +1,
}
"""+1: a higher value is more member-like (more leaked); -1: a lower value is."""


def oriented(name: str, value: float) -> float:
    """The value with its sign turned so that higher is more member-like; ``KeyError`` for an unknown metric."""
    return RISK[name] * value


def better(name: str) -> str:
    """``"lower"`` where a lower value is safer, else ``"higher"``: the direction of the metric that leaks less."""
    return "lower" if RISK[name] > 0 else "higher"
