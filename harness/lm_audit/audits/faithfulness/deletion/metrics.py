"""Faithfulness scores from numbers alone: RISE, MAS, RISE+AP, recovery, coverage and rank correlation.

RISE, MAS and RISE+AP belong to a deletion test: lower is better. Sources: RISE (Petsiuk et al. 2018), MAS (Walker et
al., IJCAI 2024), the token form of arXiv 2512.15663.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from lm_audit.audits.faithfulness.passage.spans import near_equal_ranges
from lm_audit.errors import DataError, UsageError

Vector = NDArray[np.float64]


class FaithfulnessScores(NamedTuple):
    """The scores of one deletion path; ``density`` and ``response`` have one value a step, from nothing deleted on.

    ``degenerate`` says that deletion did not lower the score (or that there was nothing to delete): the numbers are
    then defined but say nothing about the attribution.
    """

    rise: float
    mas: float
    rise_ap: float
    degenerate: bool
    density: Vector
    response: Vector


def feature_weights(attribution: ArrayLike) -> Vector:
    """Signed sum over rows of an R x n attribution; ``DataError`` for NaN or infinite values, which have no order."""
    weights = np.asarray(attribution, dtype=np.float64)
    weights = weights.reshape(1, -1) if weights.ndim == 1 else weights
    if not np.isfinite(weights).all():
        row, column = np.argwhere(~np.isfinite(weights))[0]
        raise DataError(
            f"attribution[{row}, {column}] is {weights[row, column]}; every feature needs a finite weight "
            "(set undefined cells to 0 first)"
        )
    total: Vector = weights.sum(axis=0)
    return total


def deletion_order(weights: ArrayLike) -> list[int]:
    """Features by falling weight; ties by lower index."""
    return [int(index) for index in np.argsort(-np.asarray(weights, dtype=np.float64), kind="stable")]


def deletion_groups(order: Sequence[int], steps: int) -> list[list[int]]:
    """The features that each step deletes: ``min(max(1, steps), n)`` groups, the first ``n mod q`` one larger."""
    return [list(order[start:stop]) for start, stop in near_equal_ranges(len(order), steps)]


def density_curve(weights: Vector, groups: Sequence[Sequence[int]]) -> Vector:
    """Share of attribution not yet deleted, from 1; a straight line where the total is not positive."""
    total = float(weights.sum())
    if total <= 0.0:
        return np.linspace(1.0, 0.0, len(groups) + 1)
    deleted = np.array([weights[list(group)].sum() for group in groups]) / total
    return 1.0 - np.concatenate([[0.0], np.cumsum(deleted)])


def monotone_response(scores: Vector) -> Vector:
    """Scores scaled to 1 (nothing deleted) .. 0 (all deleted), clipped, and never rising again.

    Where both end points are equal a step is +-infinity (clipped to 1 or 0) or 0/0 (no information: the minimum so
    far).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        clipped = np.clip((scores - scores[-1]) / abs(scores[0] - scores[-1]), 0.0, 1.0)
    clipped = np.where(np.isnan(clipped), 1.0, clipped)
    return np.minimum.accumulate(clipped)


def corrected_response(response: Vector, penalty: Vector) -> Vector:
    """Response plus alignment penalty, clipped and stretched to 0..1; a straight line where it is constant."""
    raised = np.clip(response + penalty, 0.0, 1.0)
    spread = raised.max() - raised.min()
    if spread == 0.0:
        return np.linspace(1.0, 0.0, len(raised))
    stretched: Vector = (raised - raised.min()) / spread
    return stretched


def area(curve: Vector) -> float:
    """Trapezoid area over equally spaced steps; one point alone has no area."""
    return float((curve.sum() - curve[0] / 2 - curve[-1] / 2) / max(1, len(curve) - 1))


def faithfulness_scores(scores: ArrayLike, attribution: ArrayLike, steps: int) -> FaithfulnessScores:
    """RISE, MAS and RISE+AP of one deletion path, lower is better.

    ``scores``: log-likelihood of the generation before and after each deletion step (q + 1 values); ``attribution``:
    R x n (or n) signed weights of the deletable features; ``steps``: how many steps were asked for, of which
    ``q = min(max(1, steps), n)`` exist. ``DataError`` for values that are not finite, ``UsageError`` for a count of
    scores that does not fit.
    """
    weights = feature_weights(attribution)
    values = np.asarray(scores, dtype=np.float64).ravel()
    groups = deletion_groups(deletion_order(weights), steps)
    if not np.isfinite(values).all():
        raise DataError(f"deletion scores must be finite log-likelihoods, got {values.tolist()}")
    if len(values) != len(groups) + 1:
        raise UsageError(
            f"{len(values)} scores for {len(groups)} deletion steps of {len(weights)} features; need steps + 1"
        )
    if not groups:
        return FaithfulnessScores(0.0, 0.0, 0.0, True, np.ones(1), np.ones(1))
    density = density_curve(weights, groups)
    response = monotone_response(values)
    penalty = np.abs(response - density)
    return FaithfulnessScores(
        rise=area(response),
        mas=area(corrected_response(response, penalty)),
        rise_ap=area(response + penalty),
        degenerate=bool(values[-1] >= values[0]),
        density=density,
        response=response,
    )


def recovery(
    attribution: ArrayLike, gold_tokens: Collection[int], fraction: float = 0.1, keep: Collection[int] | None = None
) -> float | None:
    """Recall of the gold features among the ``ceil(fraction * n)`` highest weights; ``None`` where no gold is left.

    Negative and undefined weights count as 0, ties go to the lower index. ``keep`` restricts features and gold to the
    features named. Recall cannot exceed ``k / len(gold)``.
    """
    if not 0.0 < fraction <= 1.0:
        raise UsageError(f"fraction is {fraction!r}; a share of the features is above 0 and at most 1")
    rows = np.nan_to_num(np.atleast_2d(np.asarray(attribution, dtype=np.float64)), nan=0.0)
    weights = np.clip(rows.sum(axis=0), 0.0, None)
    kept = sorted(range(len(weights)) if keep is None else {index for index in keep if 0 <= index < len(weights)})
    gold = set(gold_tokens) & set(kept)
    if not gold:
        return None
    count = max(1, math.ceil(fraction * len(kept)))
    top = {kept[index] for index in deletion_order(weights[kept])[:count]}
    return len(top & gold) / len(gold)


def coverage(attribution: ArrayLike, gold: Collection[int]) -> tuple[float, float, float]:
    """Shares of gold units whose part of the attribution is near its fair part, above half of it, above all of it.

    The fair part is ``1 / len(gold)``; near is between half and one and a half of it. Zeros where nothing is
    attributed.
    """
    rows = np.nan_to_num(np.atleast_2d(np.asarray(attribution, dtype=np.float64)), nan=0.0)
    total = float(np.abs(rows.sum(axis=0)).sum())
    if total == 0.0 or not gold:
        return 0.0, 0.0, 0.0
    parts = np.abs(rows.sum(axis=0))[sorted(gold)] / total
    fair = 1.0 / len(gold)
    near = (parts > fair / 2) & (parts < 1.5 * fair)
    return float(near.mean()), float((parts > fair / 2).mean()), float((parts > fair).mean())


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float | None:
    """Spearman correlation with average ranks for ties; ``None`` where one side is constant or has under two values."""
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if len(left) < 2 or np.ptp(left) == 0.0 or np.ptp(right) == 0.0:
        return None
    return float(spearmanr(left, right).statistic)


def normalised_score(value: float, random: float, oracle: float) -> float | None:
    """Where a score lies between a random order (0) and the oracle (1); ``None`` where the two do not differ.

    Above 1: better than the oracle order; below 0: worse than random.
    """
    gap = random - oracle
    return None if abs(gap) < 1e-12 else (random - value) / gap
