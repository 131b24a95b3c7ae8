"""An interval for the average precision that covers from chance up to near 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.resampling import evaluate, paired_batches
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, two_groups
from lm_audit.stats.ranking.scores import auc_of, average_precision_of, pr_auc, roc_auc
from lm_audit.stats.shares.proportions import clopper_pearson

FEWEST = 15
"""With fewer positives than this the interval covers too little (8: 86 to 95%)."""

METHOD = (
    "average precision, each side resampled (percentile or Student's limits on the logit scale) or as the AUC's limits"
)

_FURTHEST = 10.0
"""Normal scores lie within 5 of 0: moved so far, groups are apart."""

_STEPS = 30


@checked
def pr_interval(
    members: ArrayLike, controls: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 1999, seed: int
) -> Estimate:
    """Average precision with an interval, members as positives; ``chance`` is that of :func:`pr_auc`.

    The bootstrap's percentiles are too short near 1, Student's limits on the logit scale near chance. Near 1 both are:
    of 15 and 15 or 24 and 24 scores with a true average precision of 0.93 to 0.98 resamples show 1 too often, and the
    truth lay below the limits in 7 to 38 %. So a third pair is made from the AUC's limits, which cover there: members
    are moved along normal scores until the AUC is at its limit, and what the average precision is then is the limit (or
    the share of members above all controls by Clopper and Pearson's lower limit, where that is more).
    Each end is the furthest of the three; and where the AUC's limits hold 0.5, these hold chance. Fewer than 15 scores
    on a side give no interval.
    """
    point, groups = pr_auc(members, controls), two_groups(members, controls)
    if isinstance(groups, str) or point.value is None:
        return point
    smaller, value = min(map(len, groups)), point.value
    point = replace(point, method=METHOD, confidence=confidence)
    if smaller < FEWEST:
        return replace(point, note=f"{smaller} scores on a side give no interval, {FEWEST} do")
    area = roc_auc(*groups, confidence=confidence)
    if area.low is None or area.high is None:
        return replace(point, note=area.note)
    batches = paired_batches(seed, len(groups[0]), len(groups[1]), n_resamples)
    drawn = np.concatenate([evaluate(average_precision_of, groups[0][one], groups[1][two]) for one, two in batches])
    from scipy.special import expit, logit, stdtrit

    tail, edge = (1 - confidence) / 2, 0.25 / len(groups[0])
    spread = float(logit(np.clip(drawn, edge / 10, 1 - edge)).std(ddof=1))
    half = float(stdtrit(len(groups[0]) - 1, 1 - tail)) * spread
    centre = float(logit(min(max(value, edge / 10), 1 - edge)))
    # The members that stand above all controls have a precision of 1 each, however far the others are moved.
    first = clopper_pearson(int((groups[0] > groups[1].max()).sum()), len(groups[0]), confidence).low or 0.0
    moved = [max(first, _at_area(*groups, area.low)), _at_area(*groups, area.high)]
    if area.low <= 0.5 <= area.high and point.chance is not None:
        moved.append(point.chance)
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return replace(
        point,
        low=min(value, float(low), float(expit(centre - half)), *moved),
        high=max(value, float(high), float(expit(centre + half)), *moved),
        fewest=FEWEST,
    )


def _at_area(members: Array, controls: Array, area: float) -> float:
    """The average precision where all members are moved on so far that the AUC is ``area``: along normal scores of the
    ranks, so that the scale of the scores does not matter.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n = len(members) + len(controls)
    scores = ndtri((rankdata(np.concatenate([members, controls])) - 0.375) / (n + 0.25))
    own, others = scores[: len(members)], scores[len(members) :]
    low, high = -_FURTHEST, _FURTHEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if auc_of(own + middle, others) < area else (low, middle)
    return float(average_precision_of(own + high, others))
