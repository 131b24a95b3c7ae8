"""Membership of one stage: members against held-out twins, never against ordinary text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.attribution.directions import RISK
from lm_audit.audits.privacy.measure.stage_scores import PRIMARY_SCORE, StageScores
from lm_audit.audits.privacy.statistics import epsilon_of_scores
from lm_audit.stats import (
    Estimate,
    bounded_mean,
    even_rank_bits,
    exposure_sampled,
    mean_exposure,
    roc_auc,
    tpr_at_fpr,
)
from lm_audit.stats.ranking.average_precision import pr_interval

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
FPRS = ("0.01", "0.001")
CALIBRATED = "span_calibrated_logprob"
SCORES = (
    "span_mean_logprob",
    CALIBRATED,
    "span_min_k20_ceil",
    "span_min_kpp20_ceil",
    "mean_logprob",
    "min_k20_ceil",
    "min_kpp20_ceil",
    "zlib_ratio_mean_nll",
    "lowercase_log_ratio",
    "mean_rank0",
)
"""Scores whose AUC is reported beside that of the primary one."""


def oriented_values(table: pd.DataFrame, name: str) -> Floats:
    """A column as an array whose sign is turned so that higher is more member-like."""
    return np.asarray(table[name], dtype=np.float64) * RISK[name]


def sides(scores: StageScores, name: str) -> tuple[Floats, Floats]:
    """Oriented values of members and of twins."""
    return oriented_values(scores.of("member"), name), oriented_values(scores.of("control"), name)


def membership(scores: StageScores, *, seed: int, n_resamples: int = 1999) -> dict[str, Estimate]:
    """AUC and average precision with intervals, and TPR at 1% and 0.1% FPR, of the primary score; AUC of the others."""
    members, twins = sides(scores, PRIMARY_SCORE)
    found = {"roc_auc": auc_estimate(members, twins), "pr_auc": pr_estimate(members, twins, seed, n_resamples)}
    known = [name for name in SCORES if name in scores.canaries]
    for fpr in FPRS:
        found[f"tpr_at_{fpr}"] = tpr_estimate(members, twins, fpr)
        if CALIBRATED in known:
            found[f"tpr_at_{fpr}.{CALIBRATED}"] = tpr_estimate(*sides(scores, CALIBRATED), fpr)
    for name in known:
        found[f"roc_auc.{name}"] = auc_estimate(*sides(scores, name))
    return found


def auc_estimate(members: Floats, twins: Floats) -> Estimate:
    """ROC AUC; where the groups are wholly apart DeLong has no interval, and the bootstrap's is of zero width: none."""
    found = roc_auc(members, twins)
    # Secrets that training pushed below their twins can be told as well.
    return _directed(found, "target:0.5")


def pr_estimate(members: Floats, twins: Floats, seed: int, n_resamples: int = 1999) -> Estimate:
    """Average precision with a bootstrap interval, each side resampled; chance is the mean over random orders."""
    return replace(pr_interval(members, twins, seed=seed, n_resamples=n_resamples), better="lower")


def tpr_estimate(members: Floats, twins: Floats, fpr: str) -> Estimate:
    """Share of members above a threshold that at most ``fpr`` of the twins pass; its interval allows for both."""
    rate = tpr_at_fpr(members, twins, fpr)
    method = f"TPR at {float(fpr):.1%} FPR, members and threshold both sampled"
    if rate.tpr is None or not rate.identified:
        reason = f"not identified: {rate.note}" if rate.note else "not identified"
        return Estimate.not_estimable(reason, n=len(members), method=method, unit="share", better="lower")
    note = f"threshold {rate.threshold:.4g}, realised FPR {rate.realised_fpr:.3%}, {len(twins)} held-out twins"
    return Estimate(
        rate.tpr,
        rate.low,
        rate.high,
        n=len(members),
        method=method,
        unit="share",
        better="lower",
        note=note,
        chance=float(fpr),
    )


def exposures(scores: StageScores, name: str = "span_mean_logprob") -> list[float | None]:
    """Sampled exposure in bits of each member, in table order: its rank among the twins' losses."""
    members, twins = sides(scores, name)
    return [item.exposure for item in exposure_sampled(-members, -twins)]


def exposure_by_tier(scores: StageScores) -> dict[str, Estimate]:
    """Mean exposure of each repetition tier, sampled and (where it was measured) exact; range and cap in the note."""
    table, (members, twins) = scores.of("member"), sides(scores, "span_mean_logprob")
    repetitions = np.asarray(table["repetitions"], dtype=np.int64)
    found: dict[str, Estimate] = {}
    for tier in np.unique(repetitions):
        here = repetitions == tier
        found[f"exposure.r{tier}"] = mean_exposure(-members[here], -twins)
        if "exposure_exact" in table:
            bits, caps = (np.asarray(table[f"exposure_{name}"], dtype=np.float64)[here] for name in ("exact", "cap"))
            known = ~np.isnan(bits)  # canaries whose secrets have no form to enumerate have none
            if known.any():
                found[f"exposure_exact.r{tier}"] = _exact_tier(bits[known], caps[known])
    return dict(sorted(found.items(), key=lambda item: "exact" in item[0]))


def _exact_tier(bits: Floats, caps: Floats) -> Estimate:
    """Mean exact exposure of a tier, between 0 and the largest cap that the numbers of candidates set."""
    cap = float(caps.max())
    chance = float(np.mean([even_rank_bits(round(2.0**one)) for one in caps]))
    estimate = bounded_mean(np.clip(bits, 0.0, cap), 0.0, cap)
    remark = f"from {bits.min():.2f} to {bits.max():.2f} bits, at most {cap:.2f}"
    note = "; ".join(filter(None, (remark, "among all candidates for the last characters", estimate.note)))
    method = f"exact exposure, {estimate.method}"
    return replace(estimate, method=method, unit="bits", better="lower", note=note, chance=chance)


def epsilon_bound(scores: StageScores, assignment: str, *, delta: float = 0.0) -> Estimate:
    """A lower bound on epsilon from this one run (Steinke, Nasr, Jagielski 2023), by the primary score.

    Valid only where every canary was included by an independent fair coin; see :func:`epsilon_of_scores`.
    """
    method = "one-run audit"
    if assignment != "coins":
        reason = "the number of members was fixed; a one-run epsilon needs independent fair coins (assignment='coins')"
        return Estimate.not_estimable(reason, method=method, unit="epsilon", better="lower")
    values = oriented_values(scores.canaries, PRIMARY_SCORE)
    return epsilon_of_scores(values, np.asarray(scores.canaries["role"] == "member"), delta)


def _directed(estimate: Estimate, better: str) -> Estimate:
    fields = {name: getattr(estimate, name) for name in Estimate.__slots__}
    return Estimate(**fields | {"better": better})
