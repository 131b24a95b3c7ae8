"""How well scores tell members from controls. A score is higher when it is more member-like; negate losses first.

The closed forms below equal scikit-learn's (a test holds them to it); they are used because a bootstrap calls them ten
thousand times, where a call into scikit-learn costs a hundred times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, no_p_value, p_value, two_groups
from lm_audit.stats.ranking.intervals import auc_limits, expected_average_precision, tpr_limits


def auc_of(members: Array, controls: Array, axis: int = -1) -> Any:
    """AUC of two arrays, ties counted half; with two dimensions one AUC a row."""
    if members.ndim == 1:
        return float(placements(members, controls).mean())
    return np.array([placements(m, c).mean() for m, c in zip(members, controls, strict=True)])


def placements(members: Array, controls: Array) -> Array:
    """For each member the share of controls below it, ties counted half."""
    ordered = np.sort(controls)
    below, up_to = np.searchsorted(ordered, members, "left"), np.searchsorted(ordered, members, "right")
    return np.asarray((below + up_to) / (2 * len(controls)), dtype=np.float64)


def average_precision_of(members: Array, controls: Array, axis: int = -1) -> Any:
    """Average precision of two arrays; with two dimensions one a row."""
    if members.ndim == 1:
        reached = len(members) - np.searchsorted(np.sort(members), members, "left")
        false = len(controls) - np.searchsorted(np.sort(controls), members, "left")
        return float((reached / (reached + false)).mean())
    return np.array([average_precision_of(m, c) for m, c in zip(members, controls, strict=True)])


@checked
def delong_se(member_scores: ArrayLike, control_scores: ArrayLike) -> float | None:
    """Standard error of the AUC by DeLong, DeLong and Clarke-Pearson 1988; None with fewer than two on a side."""
    groups = two_groups(member_scores, control_scores)
    if isinstance(groups, str) or min(map(len, groups)) < 2:
        return None
    return math.sqrt(sum(_delong_parts(*groups)))


def _delong_parts(first: Array, second: Array) -> tuple[float, float]:
    """The two sides' parts of DeLong's variance."""
    return (
        float(placements(first, second).var(ddof=1)) / len(first),
        float(placements(second, first).var(ddof=1)) / len(second),
    )


@checked
def roc_auc(member_scores: ArrayLike, control_scores: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """The area under the ROC curve, ties counted half, with its interval.

    1 when every member scores above every control; equals Mann-Whitney U / (n_m n_c). The interval is Wilson's on as
    many values as DeLong's variance (averaged with Hanley and McNeil's) stands for, see
    :func:`lm_audit.stats.ranking.intervals.auc_limits`; it covers also where the groups are wholly apart. No interval
    where a side has fewer than 8 scores or all scores are equal. Raises ``UsageError`` for a confidence that is none.
    """
    groups = two_groups(member_scores, control_scores)
    n = np.size(member_scores) + np.size(control_scores)
    fields: dict[str, Any] = {"n": n, "confidence": confidence, "unit": "AUC", "better": None, "chance": 0.5}
    fields["units"] = min(np.size(member_scores), np.size(control_scores))
    if isinstance(groups, str):
        return Estimate.not_estimable(groups, method="ROC AUC", **fields)
    value, smaller = auc_of(*groups), min(map(len, groups))
    if smaller < FEWEST:
        note = f"{smaller} scores on a side give no interval, {FEWEST} do"
        return Estimate(value, method="ROC AUC", note=note, **fields)
    if min(group.min() for group in groups) == max(group.max() for group in groups):
        return Estimate(value, method="ROC AUC", note="all scores are equal: no interval", **fields)
    low, high = auc_limits(value, _delong_parts(*groups), (len(groups[0]), len(groups[1])), confidence)
    return Estimate(value, low, high, method="ROC AUC, Wilson interval on DeLong's variance", **fields)


@checked
def pr_auc(member_scores: ArrayLike, control_scores: ArrayLike) -> Estimate:
    """Average precision (area under the precision-recall curve without interpolation), members as positives.

    ``chance`` is the mean of random orders, which lies above the share of members. Tied scores enter as one threshold.
    """
    groups = two_groups(member_scores, control_scores)
    n = np.size(member_scores) + np.size(control_scores)
    if isinstance(groups, str):
        return Estimate.not_estimable(groups, n=n, method="average precision", confidence=None, unit="AP")
    value, chance = average_precision_of(*groups), expected_average_precision(len(groups[0]), n)
    units = min(map(len, groups))
    return Estimate(value, n=n, confidence=None, method="average precision", unit="AP", chance=chance, units=units)


@checked
def mann_whitney_p(member_scores: ArrayLike, control_scores: ArrayLike) -> Estimate:
    """Two-sided p-value of the Mann-Whitney test, normal approximation with ties and continuity corrected."""
    method = "Mann-Whitney, asymptotic"
    groups = two_groups(member_scores, control_scores)
    n = np.size(member_scores) + np.size(control_scores)
    if isinstance(groups, str):
        return no_p_value(groups, method=method, n=n)
    if np.ptp(np.concatenate([np.clip(g, -1e300, 1e300) for g in groups])) == 0:
        return p_value(1.0, n=n, method=method, note="all scores are equal")
    from scipy.stats import mannwhitneyu

    return p_value(float(mannwhitneyu(*groups, method="asymptotic").pvalue), n=n, method=method)


@dataclass(frozen=True, slots=True)
class DetectionRate:
    """True positive rate at a limited false positive rate.

    ``threshold`` is the largest score that does not count as detected (None: every score counts). ``allowed_fp`` =
    floor(fpr n_controls), exact. ``identified`` is False when fpr x n_controls < 1: no false positive is allowed then,
    and the rate belongs to a stricter, unknown FPR. ``low`` and ``high``: 95% limits of the rate at the asked FPR, the
    threshold's own uncertainty included (:func:`lm_audit.stats.ranking.intervals.tpr_limits`). All numbers are None,
    with ``note``, where the rate cannot be estimated.
    """

    tpr: float | None
    threshold: float | None
    n_detected: int | None
    allowed_fp: int | None
    realised_fpr: float | None
    identified: bool
    low: float | None = None
    high: float | None = None
    note: str | None = None


@checked
def tpr_at_fpr(member_scores: ArrayLike, control_scores: ArrayLike, fpr: float | str) -> DetectionRate:
    """The share of members above a threshold that lets at most ``fpr`` of the controls through.

    The threshold is the (k + 1)-th largest control, k = floor(fpr n_controls); detected means strictly above, so the
    realised FPR never exceeds the asked one. ``fpr`` is read in decimal (0.29 of 100 is 29). ``UsageError`` outside
    [0, 1].
    """
    share = _decimal_share(fpr)
    groups = two_groups(member_scores, control_scores)
    if isinstance(groups, str):
        return DetectionRate(None, None, None, None, None, False, note=groups)
    members, controls = groups
    allowed = math.floor(share * len(controls))
    threshold = _threshold(controls, allowed)
    detected = int((members > threshold).sum())
    low, high = tpr_limits(members, controls, float(share), allowed, 0.95)
    identified = share * len(controls) >= 1
    return DetectionRate(
        tpr=detected / len(members),
        threshold=threshold if math.isfinite(threshold) else None,
        n_detected=detected,
        allowed_fp=allowed,
        realised_fpr=float((controls > threshold).mean()),
        identified=identified,
        low=low,
        high=high,
        note=None if identified else f"{len(controls)} controls are too few for an FPR of {fpr}",
    )


@checked
def tpr_statistic(fpr: float | str) -> Any:
    """A statistic for :func:`bootstrap_two_sample`: the TPR at ``fpr``, many resamples at once."""
    share = _decimal_share(fpr)

    def tpr(members: Array, controls: Array, axis: int = -1) -> Any:
        allowed = math.floor(share * controls.shape[-1])
        if allowed >= controls.shape[-1]:
            return np.ones(members.shape[:-1])
        threshold = np.sort(controls, axis=-1)[..., controls.shape[-1] - 1 - allowed]
        return (members > threshold[..., None]).mean(axis=-1)

    return tpr


def _threshold(controls: Array, allowed: int) -> float:
    return float(np.sort(controls)[len(controls) - 1 - allowed]) if allowed < len(controls) else -math.inf


def _decimal_share(fpr: float | str) -> Fraction:
    try:
        # As a float first: a fraction of 1e999999999 would be written out.
        share = Fraction(str(fpr)) if 0 <= float(fpr) <= 1 else Fraction(-1)
    except (TypeError, ValueError, OverflowError):
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise UsageError(f"fpr is {fpr!r}, must lie between 0 and 1 (0.01 for 1%)")
    return share
