"""Every metric has a title, a unit, a direction and a sentence, and the page in the docs is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.audits.metric_info import MetricInfo, metric_info, metric_table, with_direction
from lm_audit.audits.metrics_page import metrics_page
from lm_audit.audits.registry import audit_packages
from lm_audit.evidence import Evidence
from lm_audit.stats import Estimate

ROOT = Path(__file__).resolve().parents[2]
OWN = [name for name, package in audit_packages().items() if package.startswith("lm_audit.")]


def test_the_page_is_that_of_the_tables() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page.strip() == metrics_page().strip(), "run: python -m lm_audit.audits.metrics_page docs/metrics.md"


@pytest.mark.parametrize("audit", OWN)
def test_entries_are_whole(audit: str) -> None:
    table = metric_table(audit)
    assert table, f"{audit} has no metric_table.py"
    assert len({entry.name for entry in table}) == len(table)
    for entry in table:
        assert entry.name.startswith(f"{audit}.") and entry.title and entry.about.endswith(".")
        Estimate(1.0, better=entry.better)  # a direction that exists
        places = entry.name.count("{")
        shown = entry.filled(entry.name.replace("{", "").replace("}", "")) if places else entry
        assert shown is not None and "{" not in shown.title + shown.about


def test_the_entry_that_says_most_of_a_name_is_taken() -> None:
    found = metric_info("leakage.order_effect_unsorted.hits.p")
    assert found is not None and found.unit == "p"
    family = metric_info("privacy.exposure.r16")
    assert family is not None and family.title == "Exposure of secrets seen 16 times"
    of_stage = metric_info("privacy.2a.exposure.r4")
    assert of_stage is not None and "2a" in of_stage.title
    assert metric_info("bias.contrast.woman|man") is not None
    assert metric_info("nothing.at_all") is None and metric_info("plain") is None


@pytest.mark.parametrize("audit", OWN)
def test_a_metric_that_is_compared_with_a_value_can_lie_on_both_sides_of_it(audit: str) -> None:
    for entry in metric_table(audit):
        low, high = entry.limits
        if (entry.better or "").startswith("target:"):
            assert low < float(entry.better.partition(":")[2]) < high, entry.name  # type: ignore[union-attr]
        # A difference may have either sign, one of the largest and the smallest none.
        if " minus " in entry.about and entry.unit != "p" and not entry.about.startswith(("Largest", "Refusals of")):
            assert low < 0, entry.name


def test_what_tells_canaries_from_ordinary_text_is_no_better_either_way() -> None:
    for name in ("MIA_Gap", "ROC_AUC", "PR_AUC", "PPL_Ratio"):
        for stage in ("", "sft."):
            info = metric_info(f"privacy.{stage}source.{name}")
            assert info is not None and info.better == "neither"
    extraction = metric_info("privacy.source.Extraction_Rate")
    assert extraction is not None and extraction.better == "lower"


def test_a_direction_is_the_one_of_the_table() -> None:
    evidence = Evidence("needle")
    evidence.metric("needle.accuracy", Estimate(0.5, better="lower"))
    assert evidence.metrics["needle.accuracy"].better == "higher"
    unknown = Estimate(0.5, better="lower")
    assert with_direction("nothing.at_all", unknown) is unknown


def test_a_place_stands_for_one_part_of_a_name_but_the_last_for_all_that_is_left() -> None:
    entry = MetricInfo("a.{x}.mid.{y}", "{x} and {y}", "", None, "A sentence.")
    assert entry.filled("a.b_c.mid.d.e") == MetricInfo("a.b_c.mid.d.e", "b c and d.e", "", None, "A sentence.")
    assert entry.filled("a.b.c.mid.d") is None
