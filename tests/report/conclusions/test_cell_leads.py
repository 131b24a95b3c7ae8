"""Which case's number stands in a cell of the matrix, and how it is told why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lm_audit.report.page.leads import leads_of
from lm_audit.runstore.records import Verdict
from lm_audit.stats.estimate import Estimate


def case(label: str, value: float, word: Any, better: str | None) -> Any:
    estimate = Estimate(value, value - 0.05, value + 0.05, 60, better=better)
    verdicts = (Verdict("own.share", word, "<= 0.2", ""),) if word else ()
    metric = SimpleNamespace(name="own.share", label="own", estimate=estimate, verdicts=verdicts, headline=True)
    return SimpleNamespace(label=label, anchor=label, metrics=[metric])


@pytest.mark.parametrize(
    ("better", "words", "shown", "reading"),
    [
        (None, ("met", "missed", "undecided"), "b", "of 3 cases the one whose gate was missed: b"),
        (None, ("met", "missed", "missed"), "b", "of 3 cases one of 2 whose gates were missed: b"),
        ("lower", ("missed", "missed", "undecided"), "b", "of 3 cases one of 2 whose gates were missed: b"),
        # Another limit may hold for the case with the worse number.
        ("lower", ("missed", "met", "met"), "a", "of 3 cases the one whose gate was missed: a"),
        ("lower", ("met", "met", "undecided"), "b", "of 3 cases the worst that is certain: b"),
        (None, ("met", None, "undecided"), "a", "first of 3 cases, which span 0.05 to 0.50"),
    ],
)
def test_a_cell_with_a_missed_gate_shows_the_number_that_missed_it(
    better: str | None, words: tuple[Any, ...], shown: str, reading: str
) -> None:
    cases = [case(*made, better) for made in zip("abc", (0.05, 0.5, 0.2), words, strict=True)]
    ((lead,), without, remark) = leads_of(cases)
    assert (lead.anchor, lead.reading, without, remark) == (shown, reading, [], "")
