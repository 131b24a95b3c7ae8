"""What decides the needle audit's controls, tried on scores and answers made by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import lm_audit.audits.needle.controls.stubs as controls
from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.evaluation import answered, grid_evidence
from lm_audit.audits.needle.grid.cells import Scored
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.evidence import Control, Evidence


@cache
def samples() -> list[Sample]:
    return controls.stub_samples(0, samples=2, lengths=controls.STUB_LENGTHS[:1])[:8]


class Guesser:
    """Gives the value to the first so many samples, and nothing to the rest."""

    def __init__(self, hits: int) -> None:
        self.hits = hits

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        return [Answer(one.outputs[0] if i < self.hits else "none", "eos") for i, one in enumerate(samples)]


def scored(depth: float, found: float, answer: Answer | None = None, length: int = 2048) -> Scored:
    scores = dict.fromkeys(("all", "any", "boundary"), found)
    name = f"{length} {depth:g} {found:g}"
    return Scored(name, length, depth, depth, scores, None, answer or Answer("x", "eos"), ("1",), "")


@pytest.mark.parametrize(("hits", "passed"), [(0, True), (1, False), (8, False)])
def test_one_value_that_no_prompt_states_is_too_many_of_eight(hits: int, passed: bool) -> None:
    evidence = controls.chance_evidence(Guesser(hits), samples())
    control = evidence.control
    assert control is not None and (control.role, control.passed) == ("negative", passed)
    assert control.expected == (
        "no answer holds a value that its prompt does not (more hits than chance gives in 0.1% of runs fail)"
    )
    assert list(evidence.metrics) == list(evidence.sources) == [evidence.headline] == ["needle.chance_rate"]
    rate = evidence.metrics["needle.chance_rate"]
    assert (rate.value, rate.n, rate.better) == (hits / 8, 8, "lower") and evidence.figures == []
    assert evidence.sources["needle.chance_rate"].column == "any"
    assert control.observed == f"{hits} of 8 do, at most {rate.high:.3f} at 95%"


def test_chance_is_a_level_of_one_in_a_thousand() -> None:
    assert controls.silent(0, 1) and controls.silent(0, 10**9)
    assert controls.silent(1, 100) is False and controls.silent(1, 101) is True
    assert controls._by_chance(2, 3) == pytest.approx(3e-10, rel=1e-4)
    assert controls._by_chance(3, 3) == pytest.approx(1e-15, rel=1e-4)


MIDDLE = {0.0: 0.0, 25.0: 0.0, 50.0: 1.0, 75.0: 0.0, 100.0: 0.0}


def middle(**changed: float) -> list[Scored]:
    found = MIDDLE | {float(depth[1:]): value for depth, value in changed.items()}
    return [scored(depth, value, length=length) for length in (2048, 4096) for depth, value in found.items()]


def test_a_reader_of_the_middle_finds_that_and_nothing_else() -> None:
    control = controls._middle(middle()).control
    assert control is not None and control.passed and control.role == "positive"
    assert (control.expected, control.observed) == (
        "1.0 at depth 50, 0.0 at every other", "as expected in every cell"
    )  # fmt: skip


@pytest.mark.parametrize("changed", [{"d50": 0.5}, {"d0": 0.5}, {"d100": 1.0}, {"d25": 0.1}])
def test_every_other_cell_of_it_is_named(changed: dict[str, float]) -> None:
    control = controls._middle(middle(**changed)).control
    assert control is not None and not control.passed
    ((depth, value),) = changed.items()
    assert control.observed == "; ".join(f"L{length} D{depth[1:]}: {value:g}" for length in (2048, 4096))


@pytest.mark.parametrize(
    ("fields", "distance"),
    [
        ({"value_logprob": -2.0, "value_tokens": 4, "value_greedy": True}, 0.25),
        ({"value_logprob": -1.0, "value_tokens": 4, "value_greedy": True}, 0.0),
        ({"value_logprob": 0.0, "value_tokens": 4, "value_greedy": True}, 0.25),
        ({"value_logprob": None, "value_tokens": 4, "value_greedy": True}, math.inf),
        ({"value_logprob": math.nan, "value_tokens": 4, "value_greedy": True}, math.inf),
        ({"value_logprob": -1.0, "value_tokens": None, "value_greedy": True}, math.inf),
        ({"value_logprob": -1.0, "value_tokens": 0, "value_greedy": True}, math.inf),
        ({"value_logprob": -1.0, "value_tokens": 4, "value_greedy": False}, math.inf),
        ({"value_logprob": -1.0, "value_tokens": 4, "value_greedy": None}, math.inf),
    ],
)
def test_a_value_that_was_not_scored_is_infinitely_far_from_what_was_built(
    fields: dict[str, float | bool | None], distance: float
) -> None:
    one = scored(50.0, 1.0, Answer("1", "eos", **fields))  # type: ignore[arg-type]
    assert controls._distance(one, -0.25) == distance


def test_a_control_keeps_its_accuracy_from_gates_that_mean_models() -> None:
    evidence = controls._with_control(middle(), False, "this", "that")
    assert list(evidence.metrics) == list(evidence.sources) == [evidence.headline] == ["needle.control_accuracy"]
    assert evidence.metrics["needle.control_accuracy"].value == pytest.approx(0.2)
    assert evidence.sources["needle.control_accuracy"].column == "all"
    control = evidence.control
    assert control is not None
    assert (control.role, control.passed, control.expected, control.observed) == ("positive", False, "this", "that")


def found_all(samples: int = 2) -> list[Scored]:
    """What a reader that misses nothing gives: all cells of both lengths."""
    return [
        replace(scored(depth, 1.0, length=length), id=f"{length} {depth:g} {index}")
        for length in (2048, 4096) for depth in MIDDLE for index in range(samples)
    ]  # fmt: skip


def test_a_reader_that_misses_nothing_reads_as_far_as_was_asked() -> None:
    """Ten samples of a length show an accuracy of 0.6; a control that lost a row, or reads further or less, fails."""
    asked, ask = controls._asked(), controls._with_control
    sound = ask(found_all(), True, "this", "that", asked, longest=4096).control
    assert sound == Control("positive", True, "this", "that")
    for told in (
        ask(found_all(), True, "this", "that", asked, longest=2048),
        ask(found_all(), True, "this", "that", asked),
        ask(found_all()[:-1], True, "this", "that", asked, longest=4096),
        ask(found_all(), True, "this", "that", asked, longest=4096, also=["a fault"]),
    ):
        assert told.control is not None and not told.control.passed and told.control.observed.startswith("not so: ")
    lost = controls._middle(middle()[:-1], [({"length": 4096, "depth": 100.0}, 1)]).control
    assert lost is not None and not lost.passed and "0 rows" in lost.observed
    assert controls._middle(middle(), [({"length": 4096, "depth": 100.0}, 1)]).control == Control(
        "positive", True, "1.0 at depth 50, 0.0 at every other", "as expected in every cell"
    )


def lose_a_row(evidence: Evidence) -> None:
    evidence.rows = evidence.rows[:-1]


def narrow(evidence: Evidence) -> None:
    told = evidence.metrics["needle.accuracy"]
    evidence.metrics["needle.accuracy"] = replace(told, high=told.value)


@pytest.mark.parametrize("broken", [lose_a_row, narrow])
def test_a_grid_that_reports_what_its_rows_do_not_say_fails_the_control_without_needles(
    broken: Callable[[Evidence], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = grid_evidence

    def wrong(*given: Any, **options: Any) -> Evidence:
        evidence = honest(*given, **options)
        broken(evidence)
        return evidence

    monkeypatch.setattr(controls, "grid_evidence", wrong)
    control = controls.chance_evidence(Guesser(0), samples()).control
    assert control is not None and not control.passed


def test_an_answer_that_is_lost_fails_the_control_without_needles(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = answered
    monkeypatch.setattr(controls, "answered", lambda model, asked: honest(model, asked)[:-1])
    control = controls.chance_evidence(Guesser(0), samples()).control
    assert control is not None and not control.passed and "7 rows (all) where 8 were asked for" in control.observed


@pytest.mark.parametrize("off", [0.0, 2e-4])
def test_the_planted_model_must_give_the_values_the_probability_it_was_built_to_give(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_audit.audits.needle.controls import planted

    answer = Answer("1", "eos", value_logprob=4 * (math.log(planted.SURE) + off), value_tokens=4, value_greedy=True)
    monkeypatch.setattr(planted, "planted_model", lambda: None)
    monkeypatch.setattr(
        controls, "answered", lambda model, samples: [scored(d, 1.0, answer) for d in controls.STUB_DEPTHS]
    )
    control = controls.planted_control(0).control
    assert control is not None and control.passed is (off == 0.0)
    assert "lowest score 1 of 5 samples" in control.observed
