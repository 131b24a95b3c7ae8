"""What a transition between two stages changed: one row a metric, with interval, effect size, test and decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.attribution.directions import RISK
from lm_audit.audits.privacy.evidence.metric_sources import PER_CANARY
from lm_audit.audits.privacy.measure.source_columns import GROUP_STATISTICS, GROUPED, GroupStatistic
from lm_audit.stats import (
    Estimate,
    decide,
    mean_interval,
    paired_effect,
    sign_flip_test,
    studentised_difference,
)
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.means.skewed import growth, skewness

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
        _canary_row(metric, column, before, after, options)
        for metric, column in PAIRED.items()
        if column in before.members and column in after.members
    ]
    rows += [_grouped_row(metric, before, after, options) for metric in GROUPED if len(before.documents)]
    if len(before.twins) > 1:
        rows.append(_auc_row(before, after, options))
    return [{"transition": name, **row} for row in rows]


def did_row(before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    """Change of members minus change of twins: a shift that training gives to every text cancels out."""
    member, twin = changes_of("span_mean_logprob", before, after)
    # The one figure that the audit decides on gets five times the resamples of the others.
    found = studentised_difference(member, twin, n_resamples=5 * options.n_resamples, seed=options.seed)
    fields = {"before": float(member.mean()), "after": float(twin.mean()), "twins": len(twin)}
    row: dict[str, Any] = {"kind": "difference in differences", **fields}
    return _row(PRIMARY, row, _limits(found.difference), _standardised(member, twin), found.p.value, len(member))


def changes_of(column: str, before: Frames, after: Frames) -> tuple[Floats, Floats]:
    """The change of one column for every member and every twin that has a value at both stages."""
    pairs = ((before.members, after.members), (before.twins, after.twins))
    members, twins = (_known_changes(first, last, column) for first, last in pairs)
    return members, twins


def _known_changes(before: pd.DataFrame, after: pd.DataFrame, column: str) -> Floats:
    if column not in before or column not in after:
        return np.zeros(0)
    change = _column(after, column) - _column(before, column)
    return np.asarray(change[np.isfinite(change)], dtype=np.float64)


def _standardised(member: Floats, twin: Floats) -> float | None:
    """Cohen's d of two independent samples, pooled SD with ddof 1; None where there is no spread."""
    degrees = len(member) + len(twin) - 2
    if degrees < 1 or not len(member) or not len(twin):
        return None
    pooled = (len(member) * member.var() + len(twin) * twin.var()) / degrees
    return float((member.mean() - twin.mean()) / np.sqrt(pooled)) if pooled > 0 else None


def _canary_row(metric: str, column: str, before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    """A metric with a value a canary. ``delta`` is the members' own change; what it means is judged against the twins'
    change, since training moves the likelihood of every text. Without twins' values nothing is said of leakage.
    """
    a, b = _column(before.members, column), _column(after.members, column)
    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    if not len(a):
        nothing = {"kind": "paired", "before": None, "after": None}
        return _row(metric, nothing, Limits(note="no canary has a value at both stages"), None, None, 0)
    own = mean_interval(b - a, seed=options.seed, n_resamples=options.n_resamples)
    effect = paired_effect(a, b)
    row: dict[str, Any] = {"before": float(a.mean()), "after": float(b.mean()), "d_z": effect.d_z}
    row |= {"source_d": effect.seed_formula_population_sd, "d_av": effect.d_av} | _direction(effect)
    _, twin = changes_of(column, before, after)
    if not len(twin):
        test = sign_flip_test(b - a, seed=options.seed)
        row |= {"kind": "members alone", "judged": False}
        return _row(metric, row, _limits(own), effect.d_z, test.value, len(a))
    found = studentised_difference(b - a, twin, n_resamples=options.n_resamples, seed=options.seed)
    more = _limits(found.difference)
    row |= {"kind": "against twins", "against_twins": more.value, "against_low": more.low, "against_high": more.high}
    row |= {"twins": len(twin)}
    return _row(metric, row, _limits(own), _standardised(b - a, twin), found.p.value, len(a), judged_by=more)


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

    # Against ordinary text an interval of few canaries lies beyond 0 in up to 13.5 % where nothing changed: no test.
    untested = dict.fromkeys(("p", "significant", "practical", "more_risk"))
    return _resampled_row(metric, GROUP_STATISTICS[metric], sides(before), sides(after), options) | untested


def _auc_row(before: Frames, after: Frames, options: Resampling) -> dict[str, Any]:
    def sides(frames: Frames) -> tuple[Floats, Floats]:
        return _column(frames.members, "span_mean_logprob"), _column(frames.twins, "span_mean_logprob")

    row = _resampled_row("twin_ROC_AUC", GROUP_STATISTICS["ROC_AUC"], sides(before), sides(after), options)
    if row["more_risk"] is not None:
        # Members that training pushed below their twins are told as well as those above.
        row["more_risk"] = abs(row["after"] - 0.5) > abs(row["before"] - 0.5)
    return row


def _resampled_row(
    metric: str,
    statistic: GroupStatistic,
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
    options: Resampling,
) -> dict[str, Any]:
    """A metric of two groups: both are resampled, each on its own, and the same draw is used at both stages.

    Interval and p-value are Student's over the resamples' standard deviation, with as many degrees of freedom as the
    smaller group allows: of 8 canaries percentiles cover 88 to 90%, this 94 to 95% (MIA_Gap). Towards the longer tail,
    which the resamples show, both reach further (:func:`~lm_audit.stats.means.skewed.growth`).
    """
    first, last = (float(statistic(positive[None], negative[None])[0]) for positive, negative in (before, after))
    from scipy.special import stdtr, stdtrit

    rng = np.random.default_rng(options.seed)
    n, k = len(before[0]), len(before[1])
    rows = rng.integers(0, n, (options.n_resamples, n))
    columns = rng.integers(0, k, (options.n_resamples, k))
    deltas = statistic(after[0][rows], after[1][columns]) - statistic(before[0][rows], before[1][columns])
    if min(n, k) < FEWEST or not np.ptp(deltas):
        note = f"{n} and {k} texts give no interval, {FEWEST} do" if min(n, k) < FEWEST else "no resample differs"
        row: dict[str, Any] = {"kind": "groups resampled", "before": first, "after": last}
        return _row(metric, row, Limits(last - first, note=note), None, None, n)
    fewer, change = min(n, k), last - first
    # The bootstrap's variance divides by n where n - 1 is due.
    error = float(deltas.std(ddof=1)) * (fewer / (fewer - 1)) ** 0.5
    reach = float(stdtrit(fewer - 1, 0.975)) * error
    # A mean of n values has the n-th part of their squared skewness.
    down, up = growth(skewness(deltas) * fewer**0.5, fewer, spared=0.25)
    p = float(2 * stdtr(fewer - 1, -abs(change) / error / (down if change > 0 else up)))
    row = {"kind": "groups resampled", "before": first, "after": last}
    limits = Limits(change, change - down * reach, change + up * reach, "no value a canary: no effect size")
    return _row(metric, row, limits, None, p, n)


@dataclass(frozen=True)
class Limits:
    """A change with its interval, or why it has none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str | None = None


def _limits(estimate: Estimate) -> Limits:
    return Limits(estimate.value, estimate.low, estimate.high, estimate.note)


def _row(
    metric: str,
    fields: Mapping[str, object],
    change: Limits,
    effect: float | None,
    p: float | None,
    n: int,
    *,
    judged_by: Limits | None = None,
) -> dict[str, Any]:
    """The row of a metric; significance and direction come from ``judged_by`` (the change itself where None)."""
    judge = judged_by or change
    decision = decide(judge.low, judge.high, effect)
    significant = decision.statistically_significant
    return {
        "metric": metric,
        "judged": metric not in GROUPED,
        **fields,
        "delta": change.value,
        "low": change.low,
        "high": change.high,
        "effect": effect,
        "p": p,
        "n": n,
        "significant": significant,
        "practical": decision.practically_significant,
        "category": decision.category,
        "more_risk": None if judge.value is None or not significant else judge.value * risk_of(metric) > 0,
        "note": judge.note if judged_by is None else "; ".join(filter(None, (change.note, judge.note))) or None,
    }


def _column(table: pd.DataFrame, name: str) -> Floats:
    return np.asarray(table[name], dtype=np.float64)
