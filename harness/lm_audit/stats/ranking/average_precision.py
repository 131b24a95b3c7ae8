"""An interval for the average precision that covers from chance up to near 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.samples import two_sample_distribution
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import check_share, two_groups
from lm_audit.stats.ranking.scores import pr_auc

FEWEST = 15
"""With fewer positives than this the interval covers too little (8: 86 to 95%)."""

METHOD = "average precision, each side resampled: percentile or Student's limits on the logit scale, the wider"


def pr_interval(
    members: ArrayLike, controls: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 1999, seed: int
) -> Estimate:
    """Average precision with an interval, members as positives; ``chance`` is that of :func:`pr_auc`.

    The bootstrap's percentiles are too short near 1, Student's limits on the logit scale near chance: each end is the
    wider of both. Fewer than 15 scores on a side, or resamples that all agree, give no interval.
    """
    check_share("confidence", confidence)
    point, groups = pr_auc(members, controls), two_groups(members, controls)
    if isinstance(groups, str) or point.value is None:
        return point
    smaller, value = min(map(len, groups)), point.value
    point = replace(point, method=METHOD, confidence=confidence)
    if smaller < FEWEST:
        return replace(point, note=f"{smaller} scores on a side give no interval, {FEWEST} do")
    drawn = two_sample_distribution(*groups, "pr_auc", n_resamples=n_resamples, seed=seed)
    if not np.ptp(drawn):
        return replace(point, note="every resample gives the same value: no interval")
    from scipy.special import expit, logit, stdtrit

    tail, edge = (1 - confidence) / 2, 0.25 / len(groups[0])
    spread = float(logit(np.clip(drawn, edge / 10, 1 - edge)).std(ddof=1))
    half = float(stdtrit(len(groups[0]) - 1, 1 - tail)) * spread
    centre = float(logit(min(max(value, edge / 10), 1 - edge)))
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return replace(
        point,
        low=min(value, float(low), float(expit(centre - half))),
        high=max(value, float(high), float(expit(centre + half))),
        fewest=FEWEST,
    )
