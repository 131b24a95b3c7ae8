"""The second opinion on reported numbers: silent where all is well, and not where a number is not that of its rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.second_opinion import held_by_its_rows, misreported
from lm_audit.evidence import Control, Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, clopper_pearson

DESIGNS = 58
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``benchmarks/controls/reporting.py``."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "controls"))
    for name in ("reporting", "designs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("reporting")


@pytest.mark.parametrize("number", range(DESIGNS))
def test_right_numbers_pass_and_wrong_ones_do_not(simulated: Any, number: int) -> None:
    """A few draws of each design; the share over thousands stands in docs/controls.md."""
    assert len(simulated.DESIGNS) == DESIGNS
    design, rng = simulated.DESIGNS[number], np.random.default_rng(number)
    assert [design.draw(rng) for _ in range(8)] == [design.sound] * 8


SOURCE = MetricSource.mean("hit")


def evidence(change: Any = lambda found: found, **fields: Any) -> Evidence:
    hits = [k < 12 for k in range(40)]
    found = Evidence("needle", rows=[{"item": str(k), "hit": hit} for k, hit in enumerate(hits)], **fields)
    found.metric("needle.all", change(clopper_pearson(12, 40)), SOURCE)
    return found


def test_what_follows_from_its_rows_is_held() -> None:
    assert misreported(evidence(), counts=[({}, 40), ({"hit": True}, 12)]) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": 0.31}, "is 0.31, its rows give 0.3"),
        ({"n": 80}, "is said to rest on 80 items, its rows hold 40"),
        ({"units": 39}, "is said to rest on 39 independent units, its rows hold 40"),
        ({"low": 0.2, "high": 0.4}, "its interval reaches 0.1 from its value, by another route 0.1"),
        ({"low": 0.0, "high": 0.8}, "its interval reaches 0.5"),
        ({"low": 0.31, "high": 0.5}, "lies outside its interval"),
        ({"chance": 0.1}, "reports a chance level of 0.1, and nothing gives it one"),
    ],
)
def test_each_number_that_does_not_is_named(fields: dict[str, float], said: str) -> None:
    assert any(said in fault for fault in misreported(evidence(lambda found: replace(found, **fields))))


def test_rows_that_are_missing_or_there_twice_are_told() -> None:
    found = evidence()
    assert misreported(found, counts=[({"hit": True}, 13)]) == ["12 rows (hit True) where 13 were asked for"]
    found.rows.append(dict(found.rows[0]))
    assert "1 of 41 rows are of an item that has one" in misreported(found)


def test_a_source_that_names_a_column_of_no_row_is_a_fault_and_no_error() -> None:
    found = Evidence("needle", rows=[{"item": "a", "other": 1.0}])
    found.metric("needle.all", Estimate(1.0, n=1), SOURCE)
    assert "its source does not fit its rows" in misreported(found)[0]


def test_a_chance_level_must_be_the_one_that_the_caller_knows() -> None:
    with_chance = evidence(lambda found: replace(found, chance=0.25))
    assert misreported(with_chance, chances={"needle.all": 0.25}) == []
    assert misreported(with_chance, chances={"needle.all": (0.2, 0.3)}) == []
    assert "by another formula it is 0.35" in misreported(with_chance, chances={"needle.all": 0.35})[0]
    assert "reports no chance level, 0.25 is one" in misreported(evidence(), chances={"needle.all": 0.25})[0]


def test_a_control_with_a_fault_fails_and_says_which() -> None:
    control = Control("positive", True, "all found", "all found")
    sound = held_by_its_rows(evidence(control=control))
    assert sound.control == control
    broken = held_by_its_rows(evidence(control=control), counts=[({}, 41)], also=["something else"]).control
    assert broken is not None and not broken.passed
    assert broken.observed == "not so: 40 rows (all) where 41 were asked for; something else. all found"
    assert held_by_its_rows(evidence(), also=["something else"]).control is None


@pytest.mark.parametrize(
    ("name", "number", "told"),
    [
        ("needle.accuracy", Estimate(1.2), "the value of needle.accuracy is 1.2, its table says 0 to 1"),
        ("needle.accuracy", Estimate(0.5, chance=-0.1), "the chance level of needle.accuracy is -0.1"),
        ("bias.crows_likelihood_diff", Estimate(-0.1), "the value of bias.crows_likelihood_diff is -0.1"),
        ("bias.crows_likelihood_diff", Estimate(1.4, -1.1, 3.9, n=12), None),
        ("leakage.text.mean_logprob", Estimate(-0.1, -0.3, 0.1, n=12), None),
        ("needle.accuracy", Estimate(1.0, chance=0.0), None),
    ],
)
def test_a_number_that_its_metric_cannot_have_is_named_and_an_interval_may_go_beyond(
    name: str, number: Estimate, told: str | None
) -> None:
    found = Evidence(name.partition(".")[0])
    found.metric(name, number)
    faults = [fault for fault in misreported(found) if "its table says" in fault]
    assert len(faults) == (told is not None) and all(fault.startswith(told or "") for fault in faults)
