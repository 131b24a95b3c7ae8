"""Do scores tell two groups apart that they should not? The blind baseline of a model that saw no canary."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.audits.privacy.measure.membership import sides
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.stats import Estimate, mann_whitney_p, roc_auc

LEVEL = 0.001
"""Probability with which two groups of one kind are taken for different."""

POWER = 0.99
"""Probability with which the AUC that :func:`noticed_auc` names is noticed."""

MARGIN = 0.1
"""An AUC closer to 1/2 than this is noted and no more: twins that are this nearly alike still serve as twins."""

EXACT_BELOW = 20
"""Where the smaller group has fewer values than this, the normal approximation is off at one in a thousand."""


@dataclass(frozen=True)
class Separation:
    """AUC of the first group against the second, its Mann-Whitney p-value, and the AUC that these sizes notice.

    ``counted`` names what the groups are made of, in the plural.
    """

    auc: Estimate
    p: Estimate
    noticed: float | None
    counted: str = "canaries"

    @property
    def shown(self) -> bool:
        """Whether the groups differ at the level of one in a thousand and by more than the margin."""
        if self.p.value is None or self.auc.value is None:
            return False
        return self.p.value < LEVEL and abs(self.auc.value - 0.5) >= MARGIN

    @property
    def reach(self) -> str:
        """What the sizes can and cannot show, in words."""
        if self.noticed is None:
            return f"so few {self.counted} cannot show any AUC at the level of one in a thousand"
        return f"an AUC of {self.noticed:.2f} or more (or its mirror image) is noticed in 99 of 100 audits of this size"


def separation(first: ArrayLike, second: ArrayLike, *, counted: str = "canaries") -> Separation:
    """Compare two groups of scores; higher is more member-like. ``counted`` is for the words of the answer."""
    return Separation(
        replace(roc_auc(first, second), better="target:0.5"),
        separation_p(first, second),
        noticed_auc(np.size(first), np.size(second)),
        counted,
    )


def separation_p(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Two-sided Mann-Whitney p-value, by counting all orders where a group is small and no scores are equal."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.concatenate([a, b])
    if min(len(a), len(b)) >= EXACT_BELOW or not np.isfinite(both).all() or len(np.unique(both)) < len(both):
        return mann_whitney_p(a, b)
    if not min(len(a), len(b)):
        return mann_whitney_p(a, b)
    from scipy.stats import mannwhitneyu

    p = float(mannwhitneyu(a, b, method="exact").pvalue)
    return Estimate(p, n=len(both), confidence=None, method="Mann-Whitney, exact", unit="p")


def noticed_auc(n: int, m: int) -> float | None:
    """The smallest AUC above 1/2 that :attr:`Separation.shown` notices with 99% in groups of n and m, rounded up to a
    hundredth as it is told; None where even wholly separate groups are not shown. Variance by Hanley and McNeil (1982):
    an AUC is not quite normal, and the rounding takes the tenth of a percent that this costs.
    """
    if min(n, m) < 2 or 2 / math.comb(n + m, n) >= LEVEL:
        return None
    from scipy.optimize import brentq
    from scipy.special import ndtri

    null = math.sqrt((n + m + 1) / (12 * n * m))
    limit = max(MARGIN, float(-ndtri(LEVEL / 2)) * null)

    def excess(auc: float) -> float:
        return auc - 0.5 - limit - float(ndtri(POWER)) * _spread(auc, n, m)

    return math.ceil(100 * brentq(excess, 0.5, 1.0)) / 100 if excess(1.0) > 0 else 1.0


def _spread(auc: float, n: int, m: int) -> float:
    one, two = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
    return math.sqrt(max(0.0, (auc * (1 - auc) + (n - 1) * one + (m - 1) * two) / (n * m)))


@dataclass(frozen=True)
class BlindBaseline:
    """``verdict``: "ok", "warn", or "refuse" (then no stage's membership result means anything), and why."""

    verdict: Literal["ok", "warn", "refuse"]
    auc: Estimate
    reason: str
    found: Separation


def blind_baseline(base: StageScores) -> BlindBaseline:
    """Judge the untouched base model on the secret's log-probability of members and twins.

    Refuses where they differ at the level of one in a thousand and the AUC is 0.1 or more from 1/2: of a thousand sound
    audits one is refused. Refuses too where so few canaries could not show anything. Warns where they differ at 5%.
    What the number of canaries can notice is part of the reason.
    """
    found = separation(*sides(base, "span_mean_logprob"))
    auc, p = found.auc, found.p
    if auc.value is None or p.value is None:
        return BlindBaseline("refuse", auc, f"the base model's AUC cannot be estimated: {auc.note}", found)
    shown = f"AUC {auc.value:.3f}, p = {p.value:.4f}; {found.reach}"
    if found.noticed is None:
        return BlindBaseline("refuse", auc, f"nobody can tell whether the base model is blind: {shown}", found)
    if found.shown:
        return BlindBaseline(
            "refuse", auc, f"the untouched base model already tells members from twins: {shown}", found
        )
    if p.value < 0.05:
        advice = "read the other stages relative to it (calibrated scores, differences in differences)"
        return BlindBaseline("warn", auc, f"the base model may tell members from twins: {shown}; {advice}", found)
    return BlindBaseline("ok", auc, f"the base model does not tell members from twins: {shown}", found)
