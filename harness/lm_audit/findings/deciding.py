"""The one rule by which a finding is *found*, *not found* or *cannot tell*.

*Not found*: the whole interval lies within the margin of the null value; the effect is excluded above the distance of
its far end. *Found*: the whole interval lies beyond the null value on the side that is meant, and the p-value,
corrected for the number of findings, is at most 5 %. *Cannot tell*: neither, or the interval does not cover
(:func:`lm_audit.stats.covering.shortcoming`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from lm_audit.findings.beyond import LEVEL, Side
from lm_audit.findings.exact_shares import exact_share
from lm_audit.findings.record import Finding, Word
from lm_audit.stats.covering import independent_units, shortcoming
from lm_audit.stats.estimate import Estimate

MANY_CORRECTED = "but does not stand once corrected for the number of findings"


def decided(finding: Finding) -> Finding:
    """The finding with the verdict that its effect and its p-value (the adjusted one where there is one) give."""
    word, reason = _verdict(finding)
    same = (word, reason) == (finding.verdict, finding.reason)
    if same and word != "not found" and not reason.endswith(MANY_CORRECTED):
        return finding  # Nothing that follows from the verdict is another: what would tell is costly to find.
    excluded = excluded_above(finding) if word == "not found" else None
    needed = None
    if word == "cannot tell":
        from lm_audit.findings.needed import units_that_would_tell

        needed = units_that_would_tell(finding)
    return replace(finding, verdict=word, reason=reason, excluded=excluded, needed=needed)


def p_of_interval(estimate: Estimate, null: float, side: Side) -> float | None:
    """The p-value that agrees with a two-sided interval: Student's, with one degree of freedom less than units; of a
    share with an exact interval the binomial test's.

    1 where the value lies on the side that is not meant; ``None`` where the interval does not cover or has no bound
    towards ``null``.
    """
    from scipy.special import stdtr, stdtrit

    if shortcoming(estimate) is not None or not estimate.confidence:
        return None
    assert estimate.value is not None
    if _benign(estimate.value, null, side):
        return 1.0
    if exact_share(estimate) and 0 <= null <= 1:
        from lm_audit.stats.shares.clustered_share import share_p

        assert estimate.n is not None
        return share_p(estimate.value, float(estimate.n), null)
    bound = estimate.low if estimate.value > null else estimate.high
    if bound is None:
        return None
    half = abs(estimate.value - bound)
    if half == 0:
        return None
    units = independent_units(estimate)
    df = float(max(1, units - 1)) if units is not None else 1e6
    return float(2 * stdtr(df, -abs(estimate.value - null) * float(stdtrit(df, 0.5 + estimate.confidence / 2)) / half))


def excluded_above(finding: Finding) -> float | None:
    """The distance from the null value beyond which the interval excludes an effect of the side that is meant."""
    effect, null = finding.effect, finding.null
    if effect is None or null is None or shortcoming(effect) is not None:
        return None
    up = math.inf if effect.high is None else max(0.0, effect.high - null)
    down = math.inf if effect.low is None else max(0.0, null - effect.low)
    far = {"above": up, "below": down, "either": max(up, down)}[finding.side]
    return far if math.isfinite(far) else None


def _verdict(finding: Finding) -> tuple[Word, str]:
    p = finding.p if finding.adjusted is None else finding.adjusted
    if finding.effect is None:  # A test without an interval can find, and never exclude.
        if p is not None and p <= LEVEL:
            return "found", ""
        return "cannot tell", finding.reason or "there is no number"
    obstacle = shortcoming(finding.effect)
    if obstacle is not None:
        return "cannot tell", obstacle
    excluded = excluded_above(finding)
    if finding.margin is not None and excluded is not None and excluded <= finding.margin:
        return "not found", ""
    if finding.beyond_null:
        if p is not None and p <= LEVEL:
            return "found", ""
        return "cannot tell", f"the interval lies beyond {finding.null:g}, {_not_enough(finding)}"
    if finding.margin is None:
        return "cannot tell", "the interval reaches what no effect would give"
    if finding.margin == 0:  # a limit that is held or not, such as the threshold of a needle grid
        return "cannot tell", f"the interval lies on both sides of {finding.null:g}"
    return "cannot tell", "the interval reaches from no effect to one that matters"


def _not_enough(finding: Finding) -> str:
    """Why an interval beyond the null value is not enough."""
    if finding.p is None:
        return "but no p-value says how sure that is"
    return MANY_CORRECTED if finding.p <= LEVEL else f"but the test does not say so (p {finding.p:.3g})"


def _benign(value: float, null: float, side: Side) -> bool:
    return (side == "above" and value <= null) or (side == "below" and value >= null)
