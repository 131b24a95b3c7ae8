"""LiRA: likelihood ratio of a score under shadow models with and without the example (Carlini et al. 2022)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, finite_array, first_reason, number


@checked
def lira_online(observed: float, in_scores: ArrayLike, out_scores: ArrayLike) -> Estimate:
    """log N(observed; in) - log N(observed; out) in nats, normal fits to shadow scores (ddof 0).

    Higher: more member-like. ``in_scores`` come from shadow models trained with the example, ``out_scores`` without
    it. Scores without spread give no value.
    """
    score = number("observed", observed)
    inside, outside = _fit(in_scores, "in_scores"), _fit(out_scores, "out_scores")
    n = np.size(in_scores) + np.size(out_scores)
    if isinstance(score, str) or isinstance(inside, str) or isinstance(outside, str):
        return _answer(first_reason((score, inside, outside)) or "", "LiRA online", n)
    return _answer(_log_normal(score, *inside) - _log_normal(score, *outside), "LiRA online", n)


@checked
def lira_offline(observed: float, out_scores: ArrayLike) -> Estimate:
    """log P(out <= observed) in nats under a normal fit to the shadow scores without the example (ddof 0).

    At most 0; higher: more member-like. Scores without spread give no value.
    """
    score, outside = number("observed", observed), _fit(out_scores, "out_scores")
    n = np.size(out_scores)
    if isinstance(score, str) or isinstance(outside, str):
        return _answer(first_reason((score, outside)) or "", "LiRA offline", n)
    from scipy.special import log_ndtr

    with np.errstate(all="ignore"):
        return _answer(float(log_ndtr(_standard(score, *outside))), "LiRA offline", n)


def _fit(scores: ArrayLike, name: str) -> tuple[float, float] | str:
    values = finite_array(scores, name, minimum=2)
    if isinstance(values, str):
        return values
    with np.errstate(all="ignore"):
        mean, spread = float(values.mean()), _population_sd(values)
    if not (math.isfinite(mean) and math.isfinite(spread)):
        return f"{name} exceed the range of floats"
    return (mean, spread) if spread > 0 else f"{name} have no spread"


def _population_sd(values: Array) -> float:
    largest = float(np.abs(values).max())
    # Equal values whose mean is rounded have no spread either.
    spread = float(values.std())
    return spread if spread > 2 * float(np.finfo(np.float64).eps) * largest else 0.0


def _standard(score: float, mean: float, spread: float) -> float:
    return (score / 2 - mean / 2) / spread * 2


def _log_normal(score: float, mean: float, spread: float) -> float:
    distance = _standard(score, mean, spread)
    return -0.5 * distance * distance - math.log(spread)


def _answer(value: float | str, method: str, n: int) -> Estimate:
    if isinstance(value, float) and math.isfinite(value):
        return Estimate(value, n=n, confidence=None, method=method, unit="nats")
    reason = value if isinstance(value, str) else "the ratio exceeds the range of floats"
    return Estimate.not_estimable(reason, n=n, method=method, confidence=None, unit="nats")
