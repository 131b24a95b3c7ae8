"""A metric that changed sides of its target is told, and is neither better nor the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.metric_info import metric_table
from lm_audit.findings import claim
from lm_audit.report.comparison.direction import reversed_about
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.report.comparison.models_compared import told_comparisons
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.text import change_text, comparison_lines
from lm_audit.stats.estimate import Estimate
from tests.report.comparing.test_comparing_runs import case, compared, hits, only


def around(value: float, reach: float | None = 0.1, better: str | None = "target:0.5") -> Estimate:
    low, high = (None, None) if reach is None else (value - reach, value + reach)
    return Estimate(value, low, high, n=50, better=better)


@pytest.mark.parametrize(
    ("a", "b", "target"),
    [
        (around(0.3), around(0.7), 0.5),
        (around(0.7), around(0.3), 0.5),
        (around(0.3), around(0.55), None),
        (around(0.45), around(0.7), None),
        (around(0.3), around(0.4, 0.0), None),
        # An interval that touches the target does not exclude it.
        (around(0.4), around(0.7), None),
        (around(0.3), around(0.6), None),
        # Nor does a bound on one side.
        (around(0.3), Estimate(0.7, 0.6, None, n=50, better="target:0.5"), None),
        (around(0.3), around(0.7, None), None),
        (around(0.3, None), around(0.7), None),
        (around(-0.4, better="target:0"), around(0.2, better=None), 0.0),
        (around(0.3, better="lower"), around(0.7, better="lower"), None),
        (around(0.3, better="target:0.5"), around(0.7, better="target:0.6"), None),
        (Estimate.not_estimable("-", better="target:0.5"), around(0.7), None),
        (around(0.3), Estimate(None, 0.6, 0.8, note="-", better="target:0.5"), None),
    ],
)
def test_both_intervals_must_exclude_the_target_on_opposite_sides(a: Estimate, b: Estimate, target: float) -> None:
    assert reversed_about(a, b) == target


def change(a: Estimate, b: Estimate, adjusted: float | None = 0.8, **more: object) -> MetricChange:
    made = MetricChange("c", "c", "bias", "x.m", a, b, Estimate(0.4), 0.8, "paired", pairs=60, clusters=60)
    return replace(made, adjusted=adjusted, **more)  # type: ignore[arg-type]


WORDS = "the direction reversed: below 0.5 in A, above it in B"


def test_as_far_on_the_other_side_is_reversed_and_no_regression() -> None:
    turned = change(around(0.3), around(0.7))
    assert turned.direction == "reversed" and not turned.regression
    assert change_text(turned) == f"{WORDS}, 60 pairs"
    assert "above 0.5 in A, below it in B" in change_text(change(around(0.7), around(0.3)))


@pytest.mark.parametrize(("b", "word"), [(0.9, "worse"), (0.61, "better")])
def test_what_is_further_too_is_worse_and_says_that_it_reversed(b: float, word: str) -> None:
    turned = change(around(0.3), around(b), adjusted=0.01)
    assert turned.direction == word and WORDS in change_text(turned)


def test_a_reversal_that_is_too_small_to_matter_is_the_same_and_told() -> None:
    turned = change(around(0.49, 0.005), around(0.51, 0.005), equivalent=True, margin=0.05)
    assert turned.direction == "same" and WORDS in change_text(turned)


def test_a_preference_that_turned_is_told_everywhere(tmp_path: Path) -> None:
    runs = []
    for share in (0.30, 0.70):
        made = case(hits(share), better="target:50", scale=100.0)
        effect = made.metrics["bias.hit"]
        words: dict[str, Any] = {
            "found": f"Prefers {'one' if share > 0.5 else 'the other'}",
            "absent": "no",
            "unknown": "?",
        }
        runs.append(replace(made, findings=(claim("k", effect, metric="bias.hit", null=50.0, margin=5.0, **words),)))
    comparison = compared(tmp_path, [runs[0]], [runs[1]])
    assert only(comparison).direction == "reversed" and not comparison.failed
    (finding,) = comparison.findings
    assert (finding.moved, finding.told, finding.direction) == (False, True, "reversed")
    text = " ".join(" ".join(comparison_lines(comparison, width=400)).split())
    assert "\u21c4 reversed" in text and "the direction reversed: below 50 in A, above it in B" in text
    assert "finding: Prefers one (found \u2192 found; the change itself: reversed)" in text
    page = render_comparison(comparison)
    assert "\u21c4 reversed" in page and "Prefers one" in page
    (told,) = told_comparisons([comparison])
    assert [one["direction"] for one in told["changes"]] == ["reversed"]


def test_members_told_either_way_are_no_improvement() -> None:
    """Secrets that training pushed below their twins are told as surely: 0.06 is no better than 0.95."""
    areas = [entry for entry in metric_table("privacy") if "roc_auc" in entry.name]
    assert len(areas) == 6 and {entry.better for entry in areas} == {"target:0.5"}
    turned = change(around(0.95, 0.04), around(0.06, 0.05))
    assert turned.direction == "reversed"
    assert (
        change(around(0.95, 0.04), around(0.06, 0.05), adjusted=0.01).direction == "better"
    )  # 0.44 is nearer than 0.45
