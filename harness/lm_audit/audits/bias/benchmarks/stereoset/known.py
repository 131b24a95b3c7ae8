"""StereoSet's numbers of scores that are known beforehand, and the interval of ICAT once more: by trying the limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.benchmarks.stereoset.audit import stereoset_evidence
from lm_audit.audits.bias.benchmarks.stereoset.items import StereoSetItem
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence
from lm_audit.stats.estimate import Estimate

TERMS, TRIED = 16, 2001
"""Terms of one to three items; stereotype scores that are tried between their limits."""

OFF = 0.06
"""Of 100: as far apart as two of the tried ones may leave the largest ICAT."""


def made_scores() -> tuple[list[StereoSetItem], NDArray[np.float64]]:
    """Items and their scores, where the stereotype wins in most and one candidate in five loses to the unrelated."""
    items: list[StereoSetItem] = []
    scores = []
    for term in range(TERMS):
        for number in range(1 + term % 3):
            place = len(items)
            items.append(
                StereoSetItem(
                    item=f"{term}/{number}",
                    task="intersentence",
                    target=f"term {term}",
                    bias_type="made",
                    context=f"A sentence of term {term}.",
                    stereotype=f"One {number}.",
                    anti_stereotype=f"Another {number}.",
                    unrelated=f"A third {number}.",
                )
            )
            scores.append([-1.0 - (place * 7) % 5, -2.5 - (place * 3) % 4, -4.2 - place % 2])
    return items, np.array(scores)


def wrong_of_known_scores() -> tuple[int, list[str]]:
    """How many numbers of made scores were reported, and what of them follows neither from rows nor from limits."""
    items, scores = made_scores()
    evidence = stereoset_evidence(items, scores)
    faults = misreported(evidence, chances=dict.fromkeys(evidence.metrics, 50.0), counts=[({}, len(items))])
    return len(evidence.metrics), [*faults, *wrong_icat(evidence)]


def wrong_icat(evidence: Evidence) -> list[str]:
    """Intervals of ICAT that do not reach from the least to the largest that the limits of SS and LMS leave.

    All items are of one type, whose LMS is that of all of them.
    """
    faults = []
    for parts in (("", "", ""), ("_micro", "_micro", "_micro"), (".type.made", "", ".type.made")):
        names = [f"bias.stereoset_{name}{part}" for name, part in zip(("ss", "lms", "icat"), parts, strict=True)]
        ss, lms, found = (evidence.metrics[name] for name in names)
        wanted = icat_limits(ss, lms)
        if wanted is None or not _near(found.low, wanted[0]) or not _near(found.high, wanted[1]):
            faults.append(f"{names[2]} lies between {found.low} and {found.high}, by another route {wanted}")
    return faults


def _near(limit: float | None, wanted: float) -> bool:
    return limit is not None and abs(limit - wanted) <= OFF


def icat_limits(ss: Estimate, lms: Estimate) -> tuple[float, float] | None:
    """The least and the largest ICAT of all SS and LMS within their limits; ``None`` where one has none."""
    if ss.low is None or ss.high is None or lms.low is None or lms.high is None:
        return None
    even = 1 - np.abs(np.linspace(ss.low, ss.high, TRIED) / 50 - 1)
    tried = np.outer([lms.low, lms.high], even)
    return float(tried.min()), float(tried.max())
