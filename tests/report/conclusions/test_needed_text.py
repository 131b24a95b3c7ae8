"""How many more items are told to be needed, and in which words."""

from __future__ import annotations

import pytest

from lm_audit.findings import claim
from lm_audit.report.conclusions.by_strength import needed_text
from lm_audit.stats.estimate import Estimate


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (Estimate(0.2, -0.1, 0.5, 40), "about 175 questions would tell"),
        (Estimate(0.2, -0.1, 0.5, 7), "at least 8 questions are needed"),
        (Estimate(0.2, n=5), "at least 8 questions are needed"),
        (Estimate(0.2, n=60, units=5, fewest=6), "at least 6 questions are needed"),
        (Estimate(0.2, n=40), ""),
        (Estimate.not_estimable("no rows"), ""),
        (Estimate(0.2, 0.1, 0.3, 40), ""),
    ],
)
def test_too_few_items_for_an_interval_do_not_say_how_many_would_tell(effect: Estimate, said: str) -> None:
    finding = claim("k", effect, found="F", absent="A", unknown="U", null=0.0, margin=0.05, counted="questions")
    assert needed_text(finding) == said
