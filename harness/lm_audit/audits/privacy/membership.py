"""Membership of one stage: members against held-out twins, never against ordinary text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.directions import RISK
from lm_audit.audits.privacy.stagescores import PRIMARY_SCORE, StageScores
from lm_audit.stats import (
    Estimate,
    bootstrap_ci,
    bootstrap_two_sample,
    exposure_sampled,
    one_run_epsilon,
    pr_auc,
    roc_auc,
    tpr_at_fpr,
)

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
    return _directed(found, "lower")


def pr_estimate(members: Floats, twins: Floats, seed: int, n_resamples: int = 1999) -> Estimate:
    """Average precision with a bootstrap interval, each side resampled on its own; chance is the share of members."""
    point = pr_auc(members, twins)
    if point.value is None:
        return point
    interval = bootstrap_two_sample(members, twins, "pr_auc", seed=seed, n_resamples=n_resamples)
    return Estimate(
        point.value,
        interval.low,
        interval.high,
        n=point.n,
        method="average precision, percentile bootstrap, each side resampled",
        unit="AP",
        better="lower",
        chance=point.chance,
        note=interval.note,
    )


def tpr_estimate(members: Floats, twins: Floats, fpr: str) -> Estimate:
    """Share of members above a threshold that at most ``fpr`` of the twins pass, with Clopper-Pearson bounds."""
    rate = tpr_at_fpr(members, twins, fpr)
    method = f"TPR at {float(fpr):.1%} FPR, Clopper-Pearson"
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
    table = scores.of("member")
    cap = float(np.log2(len(scores.of("control")) + 1))
    found = _tiers("exposure", table, np.asarray(exposures(scores), dtype=np.float64), f"the twins cap it at {cap:.2f}")
    if "exposure_exact" in table:
        exact = np.asarray(table["exposure_exact"], dtype=np.float64)
        found |= _tiers("exposure_exact", table, exact, "among all candidates for the last characters")
    return found


def _tiers(name: str, table: pd.DataFrame, values: Floats, remark: str) -> dict[str, Estimate]:
    repetitions = np.asarray(table["repetitions"], dtype=np.int64)
    return {f"{name}.r{r}": _tier(name, values[repetitions == r], remark) for r in np.unique(repetitions)}


def _tier(name: str, values: Floats, remark: str) -> Estimate:
    """Mean bits of a tier, canaries resampled; chance is the mean over an even rank among many, log2(e) bits."""
    estimate = bootstrap_ci(values, n_resamples=1999, method="percentile", seed=0)
    note = "; ".join(filter(None, (f"from {values.min():.2f} to {values.max():.2f} bits", remark, estimate.note)))
    method = f"{name.replace('_', ' ')}, mean over canaries, {estimate.method}"
    chance = float(np.log2(np.e))
    return replace(estimate, method=method, unit="bits", better="lower", note=note, chance=chance)


def epsilon_bound(scores: StageScores, assignment: str, *, delta: float = 0.0) -> Estimate:
    """A lower bound on epsilon from this one run (Steinke, Nasr, Jagielski 2023).

    Valid only where every canary was included by an independent fair coin. The number of guesses is fixed beforehand:
    the top and the bottom quarter of all canaries by the primary score are guessed to be in and out.
    """
    method = "one-run audit"
    if assignment != "coins":
        reason = "the number of members was fixed; a one-run epsilon needs independent fair coins (assignment='coins')"
        return Estimate.not_estimable(reason, method=method, unit="epsilon", better="lower")
    table = scores.canaries
    values = oriented_values(table, PRIMARY_SCORE)
    order = np.argsort(-values, kind="stable")
    quarter = len(values) // 4
    included = np.asarray(table["role"] == "member")
    right = int(included[order[:quarter]].sum() + (~included[order[len(order) - quarter :]]).sum())
    return one_run_epsilon(len(values), 2 * quarter, right, delta)


def _directed(estimate: Estimate, better: str) -> Estimate:
    fields = {name: getattr(estimate, name) for name in Estimate.__slots__}
    return Estimate(**fields | {"better": better})
