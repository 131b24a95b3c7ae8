"""What a transition between two stages changed: one row a metric, with interval, effect size, test and decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.directions import RISK
from lm_audit.audits.privacy.source_columns import GROUP_STATISTICS, GROUPED, PER_CANARY, GroupStatistic
from lm_audit.stats import bootstrap_ci, bootstrap_two_sample, decide, paired_effect, permutation_test, sign_flip_test

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
PRIMARY = "secret_logprob_did"
"""Difference in differences of the secret-span log-probability, members against held-out twins."""

PAIRED: Mapping[str, str] = {
    **PER_CANARY,
    "secret_logprob": "span_mean_logprob",
    "secret_min_k20": "span_min_k20_ceil",
    "secret_min_kpp20": "span_min_kpp20_ceil",
    "zlib_ratio": "zlib_ratio_mean_nll",
    "extraction_third": "extracted_third",
}
"""Metrics with a value a canary, and its column."""

_OWN_RISK = {
    PRIMARY: +1,
    "twin_ROC_AUC": +1,
    "secret_logprob": +1,
    "secret_min_k20": +1,
    "secret_min_kpp20": +1,
    "zlib_ratio": -1,
    "extraction_third": +1,
}


def risk_of(metric: str) -> int:
    """+1 where a higher value leaks more."""
    return _OWN_RISK[metric] if metric in _OWN_RISK else RISK[metric]


@dataclass(frozen=True)
class Resampling:
    """Seed and number of bootstrap resamples of every interval."""

    seed: int
    n_resamples: int = 1999


@dataclass(frozen=True)
class Frames:
    """The rows of one stage by role."""

    members: pd.DataFrame
    twins: pd.DataFrame
    documents: pd.DataFrame


def transition_rows(name: str, before: Frames, after: Frames, options: Resampling) -> list[dict[str, Any]]:
    """One row a metric for the change from ``before`` to ``after``: the primary figure first."""
    rows = [did_row(before, after, options)] if len(before.twins) > 1 else []
    rows += [
        _paired_row(metric, before.members[column], after.members[column], options)
        for metric, column in PAIRED.items()
        if column in before.members and column in after.members
    ]
    rows += [_grouped_row(metric, before, after, options) for metric in GROUPED if len(before.documents)]
    if len(before.twins) > 1:
        rows.append(_auc_row(before, after, options))
    return [{"transition": name, **row} for row in rows]


def did_row(before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    """Change of members minus change of twins: a shift that training gives to every text cancels out."""
    column = "span_mean_logprob"
    member, twin = _difference(before.members, after.members, column), _difference(before.twins, after.twins, column)
    interval = bootstrap_two_sample(
        member, twin, "mean_difference", method="BCa", seed=options.seed, n_resamples=options.n_resamples
    )
    test = permutation_test(member, twin, seed=options.seed)
    effect = _standardised(member, twin)
    row: dict[str, Any] = {
        "kind": "difference in differences",
        "before": float(member.mean()),
        "after": float(twin.mean()),
    }
    return _row(
        PRIMARY, row, interval.value, interval.low, interval.high, effect, test.value, len(member), interval.note
    )


def _standardised(member: Floats, twin: Floats) -> float | None:
    """Cohen's d of two independent samples, pooled SD with ddof 1; None where there is no spread."""
    degrees = len(member) + len(twin) - 2
    if degrees < 1:
        return None
    pooled = ((len(member) - 1) * member.var(ddof=1) + (len(twin) - 1) * twin.var(ddof=1)) / degrees
    return float((member.mean() - twin.mean()) / np.sqrt(pooled)) if pooled > 0 else None


def _paired_row(metric: str, before: Any, after: Any, options: Resampling) -> dict[str, Any]:
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    if not len(a):
        nothing = {"kind": "paired", "before": None, "after": None}
        return _row(metric, nothing, None, None, None, None, None, 0, "no canary has a value at both stages")
    interval = bootstrap_ci(b - a, seed=options.seed, n_resamples=options.n_resamples)
    effect = paired_effect(a, b)
    test = sign_flip_test(b - a, seed=options.seed)
    row: dict[str, Any] = {"kind": "paired", "before": float(a.mean()), "after": float(b.mean())}
    row |= {"source_d": effect.seed_formula_population_sd, "d_av": effect.d_av} | _direction(effect)
    return _row(
        metric, row, float((b - a).mean()), interval.low, interval.high, effect.d_z, test.value, len(a), interval.note
    )


def _direction(effect: Any) -> dict[str, Any]:
    found = effect.direction
    if found is None:
        return {}
    return {
        "positive": found.pos,
        "negative": found.neg,
        "ties": found.zero,
        "consistency": found.consistency_nonzero,
        "sign_test_p": found.sign_test_p,
    }


def _grouped_row(metric: str, before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    def sides(frames: Frames) -> tuple[Floats, Floats]:
        return _column(frames.members, "mean_logprob"), _column(frames.documents, "mean_logprob")

    return _resampled_row(metric, GROUP_STATISTICS[metric], sides(before), sides(after), options)


def _auc_row(before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    def sides(frames: Frames) -> tuple[Floats, Floats]:
        return _column(frames.members, "span_mean_logprob"), _column(frames.twins, "span_mean_logprob")

    return _resampled_row("twin_ROC_AUC", GROUP_STATISTICS["ROC_AUC"], sides(before), sides(after), options)


def _resampled_row(
    metric: str,
    statistic: GroupStatistic,
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    options: Resampling,
) -> dict[str, Any]:
    """A metric of two groups: both are resampled, each on its own, and the same draw is used at both stages."""
    first, last = (float(statistic(positive[None], negative[None])[0]) for positive, negative in (before, after))
    rng = np.random.default_rng(options.seed)
    n, k = len(before[0]), len(before[1])
    rows = rng.integers(0, n, (options.n_resamples, n))
    columns = rng.integers(0, k, (options.n_resamples, k))
    deltas = statistic(after[0][rows], after[1][columns]) - statistic(before[0][rows], before[1][columns])
    low, high = np.quantile(deltas, (0.025, 0.975))
    tail = min((deltas <= 0).sum(), (deltas >= 0).sum())
    p = min(1.0, 2 * (1 + float(tail)) / (1 + options.n_resamples))
    row = {"kind": "groups resampled", "before": first, "after": last}
    return _row(metric, row, last - first, float(low), float(high), None, p, n, "no value a canary: no effect size")


def _row(
    metric: str,
    fields: Mapping[str, Any],
    delta: float | None,
    low: float | None,
    high: float | None,
    effect: float | None,
    p: float | None,
    n: int,
    note: str | None,
) -> dict[str, Any]:
    decision = decide(low, high, effect)
    return {
        "metric": metric,
        **fields,
        "delta": delta,
        "low": low,
        "high": high,
        "effect": effect,
        "p": p,
        "n": n,
        "significant": decision.statistically_significant,
        "practical": decision.practically_significant,
        "category": decision.category,
        "more_risk": None if delta is None or not decision.statistically_significant else delta * risk_of(metric) > 0,
        "note": note,
    }


def _difference(before: pd.DataFrame, after: pd.DataFrame, column: str) -> Floats:
    return _column(after, column) - _column(before, column)


def _column(table: pd.DataFrame, name: str) -> Floats:
    return np.asarray(table[name], dtype=np.float64)
