"""What makes two runs hard to compare, in the very words: numbers, plurals and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_audit.report.comparison.remarks import remarks_on, remarks_on_metrics
from lm_audit.runstore.records import Attempt, CaseRecord, DamagedLine, Outcome, Run
from lm_audit.stats.estimate import Estimate


def case(case_id: str, model: str = "a", outcome: Outcome = "passed", *, control: bool = False) -> CaseRecord:
    role = "positive" if control else None
    return CaseRecord(case_id, "x", model, "cpu", None, Attempt(1, outcome, "main", 1.0), control_role=role)


def run(run_id: str = "one", *cases: CaseRecord, **changed: Any) -> Run:
    metadata = changed.pop("metadata", {})
    return Run(run_id, Path(run_id), 1, metadata, cases, finished=True, **changed)


def told(a: Run, b: Run, keys_a: Sequence[str] | None = None, keys_b: Sequence[str] | None = None) -> list[str]:
    """The remarks, of cases that are matched by their ids or by the keys given."""
    sides = [
        dict(zip([case.case_id for case in one.cases] if keys is None else keys, one.cases, strict=True))
        for one, keys in ((a, keys_a), (b, keys_b))
    ]
    return list(remarks_on(a, b, *sides))


def test_no_case_in_both_and_how_to_match_them() -> None:
    apart = told(run("one", case("t[a@cpu-p]")), run("two", case("u[a@cpu-p]")))
    assert apart == ["no case is in both runs; --across-models matches cases without their model and device"]


@pytest.mark.parametrize(("many", "words"), [(1, "1 planned case"), (2, "2 planned cases")])
def test_cases_that_never_ended_are_counted(many: int, words: str) -> None:
    cut = run("cut", planned=tuple(f"t{at}" for at in range(many)))
    assert told(run(), cut) == told(cut, run()) == [f"cut is incomplete: {words} never ended"]


@pytest.mark.parametrize(("many", "places"), [(1, "1 place"), (2, "2 places")])
def test_damage_is_counted_and_its_first_place_named(many: int, places: str) -> None:
    damaged = tuple(DamagedLine(f"events-{at}.jsonl", 3, "no JSON") for at in range(many))
    assert told(run(), run("two", damaged=damaged)) == [f"two is damaged in {places}: events-0.jsonl: no JSON"]


@pytest.mark.parametrize(
    ("many", "words"), [(1, "1 control of x passed in A and was"), (2, "2 controls of x passed in A and were")]
)
def test_controls_that_were_skipped_are_counted(many: int, words: str) -> None:
    ids = [f"t[a@cpu-{at}]" for at in range(many)]
    before = run("one", *(case(one, control=True) for one in ids))
    after = run("two", *(case(one, outcome="skipped", control=True) for one in ids))
    assert told(before, after) == [f"{words} skipped in B: nothing vouches for these numbers now"]
    assert told(after, before) == []


@pytest.mark.parametrize(
    ("many", "words"), [(1, "1 control of x passed in A and was"), (2, "2 controls of x passed in A and were")]
)
def test_controls_that_were_left_out_of_what_was_measured_are_counted(many: int, words: str) -> None:
    ids = [f"t[a@cpu-{at}]" for at in range(many)]
    controls = [case(one, control=True) for one in ids]
    value = {"x.v": Estimate(0.5, 0.4, 0.6, 40)}
    number = CaseRecord("t[a@cpu]", "x", "a", "cpu", None, Attempt(1, "passed", "main", 1.0, metrics=value))
    before = run("one", number, *controls)
    assert told(before, run("two", number)) == [f"{words} not run in B: nothing vouches for these numbers now"]
    # Of another model the control is the same; one that failed or never ran vouched for nothing; nor is anything told
    # of an audit that was not measured.
    renamed = [replace(one, case_id=one.case_id.replace("[a@", "[b@"), model="b") for one in controls]
    assert not any("nothing vouches" in line for line in told(before, run("two", number, *renamed)))
    failed = [case(one, outcome="failed", control=True) for one in ids]
    assert told(run("one", number, *failed), run("two", number)) == []
    assert told(run("one", *controls), run("two")) == []
    unmeasured = case("t[a@cpu]", outcome="failed")
    other = replace(case("t[a@cpu-other]", control=True), last=number.last)
    assert told(run("one", number, *controls), run("two", unmeasured, other)) == []


def test_versions_that_differ_are_told_in_one_line_and_else_that_the_code_does() -> None:
    def made(code: str, **versions: str) -> Run:
        return run(metadata={"code_version": code, "versions": versions})

    many = {name: "1" for name in "abcdefg"}
    assert told(made("x", torch="2.13", numpy="2.4", ray="2"), made("y", torch="2.14", numpy="2.4")) == [
        "the runs were made with other versions: torch 2.13 and 2.14"
    ]
    assert told(made("x", **many), made("x", **dict.fromkeys(many, "2"))) == [
        "the runs were made with other versions: a 1 and 2, b 1 and 2, c 1 and 2, d 1 and 2, e 1 and 2, 2 more"
    ]
    five = dict(list(many.items())[:5])
    assert told(made("x", **five), made("x", **dict.fromkeys(five, "2")))[0].endswith("e 1 and 2")
    assert told(made("x", torch="2.13"), made("y", torch="2.13")) == ["the audits' code is another one in B: x and y"]
    assert (
        told(made("x"), made("x")) == told(run(), made("x")) == told(run(metadata={"versions": "?"}), made("x")) == []
    )


def measured(file: str, code: str, session: int = 1, **read: str) -> CaseRecord:
    """A case of an eval file with the code that ran it and what it read."""
    attempt = Attempt(1, "passed", "main", 1.0, code_version=code, session=session, read=read)
    return CaseRecord(f"{file}::t[a@cpu-{code}{session}]", "x", "a", "cpu", None, attempt)


@pytest.mark.parametrize(("many", "words"), [(1, "t0.py"), (5, "t0.py, t1.py, t2.py, t3.py, t4.py"), (6, None)])
def test_eval_files_whose_own_code_is_another_are_named(many: int, words: str | None) -> None:
    a = run("one", *(measured(f"t{at}.py", "first") for at in range(many)), measured("same.py", "one"))
    b = run("two", *(measured(f"t{at}.py", "second") for at in range(many)), measured("same.py", "one"))
    named = words or "t0.py, t1.py, t2.py, t3.py, t4.py, 1 more"
    assert told(a, b) == [f"the code that ran is another one in B: {named}"] and told(a, a) == []
    one, other = (replace(run, metadata={"code_version": "v"}) for run in (a, b))
    assert told(one, other) == [f"the code that ran is another one in B: {named}"]
    # Where the package is another one, so is all code that rests on it.
    old, new = (replace(one, metadata={"code_version": text}) for one, text in ((a, "old"), (b, "new")))
    assert told(old, new) == ["the audits' code is another one in B: old and new"]


def test_files_that_cases_read_and_that_held_something_else_are_named() -> None:
    a, b = run("one", measured("t.py", "c", v="1", w="2", gone="3")), run("two", measured("t.py", "c", v="1", w="4"))
    assert told(a, b) == told(b, a) == ["files that cases read held something else in B: w"]
    # What an earlier session of the run read counts where one of its measurements stands, and else no more.
    last = measured("t.py", "c", 2, w="2")
    rest = measured("t.py", "c", 1, w="4")
    assert told(run("one", last), run("two", rest, last)) == ["files that cases read held something else in B: w"]
    again = replace(last, earlier=(rest.last,))
    assert told(run("one", last), run("two", again)) == []


def test_another_model_beside_cases_in_common_is_named_once() -> None:
    shared = case("t::s[c@cpu]", "c")
    before = run("one", shared, case("t::q[a@cpu-of [a@cpu]", "a"))
    after = run("two", shared, case("t::q[b@cpu-of [a@cpu]", "b"))
    assert told(before, after) == ["cases of a are in A alone, the same of b in B alone; --across-models matches them"]


def test_cases_that_were_matched_across_models_are_in_both() -> None:
    before, after = run("one", case("t[a@cpu-p]", "a")), run("two", case("t[b@cpu-p]", "b"))
    assert told(before, after, ["t[p]"], ["t[p]"]) == []


@pytest.mark.parametrize(
    ("first", "second", "remarks"),
    [
        ({"thinking_tokens": 10}, {"thinking_tokens": 20}, ["the runs differ in thinking tokens: 10 and 20"]),
        ({"thinking_tokens": 10}, {}, ["the runs differ in thinking tokens: 10 and none"]),
        ({}, {"thinking_tokens": 10}, ["the runs differ in thinking tokens: none and 10"]),
        ({"chat_args": {"a_b": 1}}, {"chat_args": {"a_b": 2}}, ["the runs differ in a b: 1 and 2"]),
        ({"chat_args": {"a_b": 1}}, {}, ["the runs differ in a b: 1 and none"]),
        ({"chat_args": "none"}, {"chat_args": {"a": 1}}, ["the runs differ in a: none and 1"]),
        ({"data": {"z": 1, "a": 1, 3: 1}}, {"data": {}}, [f"the runs differ in {name}: 1 and none" for name in "3az"]),
        ({"seed": 0}, {"seed": 0}, []),
    ],
)
def test_options_that_differ_are_named_with_both_values(
    first: dict[str, Any], second: dict[str, Any], remarks: list[str]
) -> None:
    before, after = run("one", metadata={"options": first}), run("two", metadata={"options": second})
    assert told(before, after) == remarks


@pytest.mark.parametrize("lost_in", ["A", "B"])
@pytest.mark.parametrize(("many", "more"), [(1, None), (5, None), (6, 1), (8, 3)])
def test_headlines_that_lost_items_are_named_up_to_five(many: int, more: int | None, lost_in: str) -> None:
    side = SimpleNamespace(better="lower")
    changes: list[Any] = [
        SimpleNamespace(
            metric=f"x.{at}",
            a=side,
            b=side,
            decided=True,
            basis="paired",
            pairs=7,
            others=1,
            only_a=2 * (lost_in == "B"),
            only_b=2 * (lost_in == "A"),
            case_id="t",
            case_id_b="t",
        )
        for at in range(many)
    ]
    found = list(remarks_on_metrics(changes))
    expected = [
        f"2 of 10 items of x.{at} have no value in {lost_in} (t): the others alone are compared"
        for at in range(min(many, 5))
    ]
    assert found == [*expected, *([f"so have items of {more} more headlines"] if more else [])]
    # Of what is not decided, or not by pairs, nothing is told.
    for field, value in (("decided", False), ("basis", "two samples")):
        others: list[Any] = [SimpleNamespace(**vars(one) | {field: value}) for one in changes]
        assert list(remarks_on_metrics(others)) == []
