"""The one word in which a case is shown: what broke it, else the worst of its verdicts."""

from __future__ import annotations

from typing import get_args

import pytest

from lm_audit.evidence import Control
from lm_audit.report.page.states import (
    LABELS,
    MEANING,
    SEVERITY,
    SYMBOLS,
    State,
    StateName,
    case_state,
    worst,
    worst_word,
)
from lm_audit.runstore.records import Attempt, CaseRecord, Outcome, Verdict, VerdictWord

FAILED, HELD = Control("positive", False, "a gap", "none"), Control("positive", True, "a gap", "a gap")


def case(outcome: Outcome, *words: VerdictWord, cause: str | None = None, control: Control | None = None) -> CaseRecord:
    attempt = Attempt(1, outcome, "main", 1.0, cause=cause, control=control)
    verdicts = tuple(Verdict("m", word, "<= 1", "") for word in words)
    return CaseRecord("t.py::x", "bias", "m", "cpu", "f", attempt, verdicts=verdicts)


@pytest.mark.parametrize(
    ("made", "name", "if_void"),
    [
        (case("passed"), "reported", "void"),
        (case("passed", "met"), "met", "void"),
        (case("passed", "met", "undecided"), "undecided", "void"),
        (case("passed", "met", "undecided", "missed"), "missed", "void"),
        (case("failed", "met", "missed", cause="gate"), "missed", "void"),
        (case("failed", "undecided", cause="gate"), "undecided", "void"),
        (case("failed", "met", cause="test"), "failed", "void"),
        (case("failed", cause="test"), "failed", "void"),
        # What broke is told as such, whatever the audit's controls say.
        (case("failed", "missed", cause="exception"), "error", "error"),
        (case("failed", cause="timeout"), "error", "error"),
        (case("failed", cause="store"), "error", "error"),
        (case("passed", cause="exception"), "reported", "void"),
        (case("crashed", "met"), "crashed", "crashed"),
        (case("error", "met"), "error", "error"),
        (case("unfinished", "met"), "unfinished", "unfinished"),
        (case("skipped"), "skipped", "skipped"),
        # A control that failed is the one that made the audit void.
        (case("failed", cause="control", control=FAILED), "failed", "failed"),
        (case("failed", cause="exception", control=FAILED), "failed", "failed"),
        (case("passed", control=HELD), "reported", "void"),
    ],
)
def test_what_broke_a_case_comes_before_void_and_void_before_its_verdicts(
    made: CaseRecord, name: str, if_void: str
) -> None:
    assert case_state(made).name == name
    assert case_state(made, void=True).name == if_void


@pytest.mark.parametrize("number", range(len(SEVERITY)))
def test_the_worst_state_is_the_one_that_needs_attention_first(number: int) -> None:
    milder = [State(name) for name in SEVERITY[number:]]
    assert worst(reversed(milder)).name == SEVERITY[number]
    assert worst([]).name == "absent"


def test_the_worst_verdict_comes_first() -> None:
    missed, undecided, met = (Verdict("m", word, "", "") for word in ("missed", "undecided", "met"))
    assert worst_word([met, undecided, missed]) == "missed"
    assert worst_word([met, undecided]) == "undecided"
    assert worst_word([met]) == "met"
    assert worst_word([]) is None


def test_each_state_has_a_word_a_sign_and_a_meaning() -> None:
    names = set(get_args(StateName))
    assert set(SEVERITY) == set(LABELS) == set(MEANING) == set(SYMBOLS) == names
    state = State("missed")
    assert (state.label, state.symbol, state.meaning) == (LABELS["missed"], SYMBOLS["missed"], MEANING["missed"])
