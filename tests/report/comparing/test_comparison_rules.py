"""The rules of a comparison on made changes and runs: what is decided, how it is called, which cases go together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.evidence import Control
from lm_audit.report.comparison.deciding import adjusted, decides, resolution_of
from lm_audit.report.comparison.matching import keyed
from lm_audit.report.comparison.metric_change import MetricChange, _possible
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.runstore.records import Attempt, CaseRecord, PlannedCase, Run, Verdict
from lm_audit.stats.estimate import Estimate

NONE = Estimate.not_estimable("-")


def change(
    p: float | None = 0.01, a: float | None = 0.2, b: float | None = 0.6, better: str | None = "lower", **more: Any
) -> MetricChange:
    known = [NONE if v is None else Estimate(v, v - 0.1, v + 0.1, 50, better=better) for v in (a, b)]
    fields = {"case_id": "c", "case_id_b": "c", "audit": "x", "metric": "x.m", "basis": "paired"} | more
    return MetricChange(a=known[0], b=known[1], difference=NONE, p=p, **fields)


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (change(adjusted=0.05), "worse"),
        (change(adjusted=0.0501), "not shown"),
        (change(adjusted=None), "not shown"),
        (change(adjusted=0.01, a=0.6, b=0.2), "better"),
        (change(adjusted=0.01, better="higher"), "better"),
        (change(adjusted=0.01, better="higher", a=0.6, b=0.2), "worse"),
        (change(adjusted=0.01, better=None), "changed"),
        (change(adjusted=0.01, better="neither"), "changed"),
        (change(adjusted=0.01, better="target:0.5", a=0.45, b=0.9), "worse"),
        (change(adjusted=0.01, better="target:0.5", a=0.0, b=0.6), "better"),
        (change(adjusted=0.01, a=None), "not comparable"),
        (change(adjusted=0.01, b=None), "not comparable"),
        (change(adjusted=0.01, identical=True), "same"),
        (change(adjusted=0.2, equivalent=True), "same"),
        # A change that is sure is told as one, also where it is small.
        (change(adjusted=0.01, equivalent=True), "worse"),
        (change(p=None, basis="none"), "not comparable"),
        (change(p=None, basis="none", equivalent=True), "same"),
    ],
)
def test_what_a_change_is_called(made: MetricChange, word: str) -> None:
    assert made.direction == word
    assert made.regression is (word == "worse")
    assert not replace(made, void=True).regression
    assert not replace(made, decided=False).regression


@pytest.mark.parametrize(
    ("metric", "unit", "before", "after"),
    [
        ("privacy.tpr_at_0.01", "share", (0.93, 0.72, 1.14), (0.72, 1.0)),
        ("privacy.tpr_at_0.01", "share", (-0.93, -1.14, -0.72), (-1.0, -0.72)),
        ("bias.refusal_difference.a|b", "percentage points", (150.0, 90.0, 210.0), (90.0, 200.0)),
        ("x.own", "%", (80.0, 50.0, 110.0), (50.0, 100.0)),
        ("privacy.did", "nats", (8.0, 5.0, 11.0), (5.0, 11.0)),
        ("x.own", "share", (1.0, 0.72, 1.14), (0.72, 1.0)),
        ("x.own", None, (0.93, 0.72, 1.14), (0.72, 1.14)),
        # What the metric's table says of its range goes before its unit: of an excess each run has -1 to 1.
        ("bias.counterfactual_generated_excess", "share", (0.93, 0.72, 1.14), (0.72, 1.14)),
        ("leakage.order_effect_unsorted.hits", None, (-1.9, -2.3, -1.5), (-2.0, -1.5)),
    ],
)
def test_an_interval_holds_no_change_that_cannot_be(
    metric: str, unit: str | None, before: tuple[float, float, float], after: tuple[float, float]
) -> None:
    made = change(metric=metric)
    value, low, high = before
    told = replace(made, a=replace(made.a, unit=unit), difference=Estimate(value, low, high, 50, unit=unit))
    assert (_possible(told).difference.low, _possible(told).difference.high) == after


def test_audits_share_the_level_equally_whatever_they_hold() -> None:
    """One headline of audit x has half of the 5 %, four of y an eighth of it each; Holm hands on what is not needed."""
    one = change(p=0.02, audit="x", case_id="x1")
    four = [change(p=p, audit="y", case_id=f"y{k}") for k, p in enumerate((0.006, 0.5, 0.5, 0.5))]
    found = adjusted([one, *four])
    assert [entry.significant for entry in found] == [True, True, False, False, False]
    alone = adjusted([replace(one, p=0.04), *four[1:]])
    assert alone[0].adjusted == pytest.approx(0.08) and not alone[0].significant
    # Without the other audit it has all of it.
    assert adjusted([replace(one, p=0.04)])[0].adjusted == pytest.approx(0.04)


def test_what_cannot_reach_its_share_takes_no_part_and_says_so() -> None:
    strong, coarse = change(p=0.03, case_id="a"), change(p=0.06, floor=0.06, case_id="b")
    found = adjusted([strong, coarse])
    assert found[0].adjusted == pytest.approx(0.03) and found[0].able
    assert (found[1].adjusted, found[1].able) == (None, False)
    together = adjusted([strong, replace(coarse, floor=0.001)])
    assert together[0].adjusted == pytest.approx(0.06) and together[1].able


@pytest.mark.parametrize("field", [{"void": True}, {"identical": True}, {"p": None}])
def test_what_is_void_identical_or_untested_makes_no_other_test_harder(field: dict[str, Any]) -> None:
    strong = change(p=0.03, case_id="a")
    found = adjusted([replace(change(p=0.9, case_id="b"), **field), strong])
    assert found[1].adjusted == pytest.approx(0.03)
    assert found[0].adjusted is None


def test_exploratory_changes_are_adjusted_among_themselves_for_the_false_discovery_rate() -> None:
    p = [0.01, 0.02, 0.9]
    explored = [change(p=q, metric=f"x.{k}", decided=False) for k, q in enumerate(p)]
    headline, coarse = change(p=0.04), change(p=0.051, floor=0.051, metric="x.c", decided=False)
    edge = change(p=0.05, floor=0.05, metric="x.e", decided=False)
    found = adjusted([headline, *explored, coarse])
    assert [entry.adjusted for entry in found] == pytest.approx([0.04, 0.03, 0.03, 0.9, None])
    assert [entry.able for entry in found] == [True, True, True, True, False]
    assert adjusted([edge])[0].adjusted == pytest.approx(0.05)


def test_each_change_keeps_its_own_value_whatever_stands_between_them() -> None:
    explored = [change(p=p, metric=f"x.{p}", decided=False, floor=floor) for p, floor in ((0.03, 0.01), (0.06, 0.06))]
    made = [
        explored[0], change(p=0.07, floor=0.07, case_id="a"), change(p=0.03, case_id="b"), explored[1],
        change(p=0.5, case_id="c", audit="y", void=True), change(p=0.01, case_id="d"),
    ]  # fmt: skip
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0]):
        found = adjusted([made[k] for k in order])
        told = {k: (one.adjusted, one.able) for k, one in zip(order, found, strict=True)}
        assert [found[order.index(k)].p for k in range(6)] == [0.03, 0.07, 0.03, 0.06, 0.5, 0.01]
        assert [told[k][0] for k in range(6)] == pytest.approx([0.03, None, 0.03, None, None, 0.02])
        assert [told[k][1] for k in range(6)] == [True, False, True, False, True, True]


def case(
    case_id: str, *metrics: str, audit: str | None = "x", model: str | None = "m", device: str = "cpu",
    headline: str | None = None, outcome: Any = "passed", control: Control | None = None, word: Any = None,
    role: str | None = None, value: float | None = 0.5, unit: str | None = None,
) -> CaseRecord:  # fmt: skip
    estimate = NONE if value is None else Estimate(value, value - 0.1, value + 0.1, 50, better="lower", unit=unit)
    attempt = Attempt(
        1, outcome, "main", 1.0, metrics=dict.fromkeys(metrics, estimate), headline=headline, control=control
    )
    verdicts = () if word is None else (Verdict(metrics[0], word, "<= 1", ""),)
    return CaseRecord(case_id, audit, model, device, "f", attempt, verdicts=verdicts, control_role=role)


def run_of(*cases: CaseRecord, name: str = "r", size: str = "smoke", planned: tuple[str, ...] = (), **plan: Any) -> Run:
    pinned = plan.get("pinned", ())
    listed = tuple(PlannedCase(c.case_id, c.audit, c.model, c.device, pinned=c.case_id in pinned) for c in cases)
    ids = (*(c.case_id for c in cases), *planned)
    return Run(name, Path("/nonexistent"), 1, {"size": size}, cases, ids, plan=listed)


def test_the_finest_p_value_that_matters_is_the_share_of_the_smallest_headline() -> None:
    cases = [
        case("a", "x.a", headline="x.a"), case("b", "x.a", "x.b", headline="x.b"), case("c", "x.a", headline="x.a"),
        case("d", "y.a", audit="y", headline="y.a"),
    ]  # fmt: skip
    assert resolution_of(cases) == pytest.approx(0.05 / (2 * 3))
    bare = case("e", "y.a", "y.b", "y.c", audit="y")
    assert resolution_of([*cases, bare]) == pytest.approx(0.05 / (2 * 3 * 3))
    assert resolution_of([]) == pytest.approx(0.05)
    # One headline has it all, and so has a case that recorded nothing.
    assert resolution_of(cases[:1]) == resolution_of([case("n")]) == pytest.approx(0.05)


def test_a_case_is_decided_by_its_headline_or_by_all_that_it_has() -> None:
    assert decides(case("a", "x.a", "x.b", headline="x.b"), "x.b")
    assert not decides(case("a", "x.a", "x.b", headline="x.b"), "x.a")
    assert decides(case("a", "x.a", "x.b"), "x.a")


def on(model: str, device: str = "cpu", name: str = "a") -> CaseRecord:
    return case(f"t.py::x[{model}@{device}-{name}]", "x.a", model=model, device=device)


@pytest.mark.parametrize(
    ("first", "second", "partners"),
    [
        ([on("m")], [on("m")], {"m": "m"}),
        ([on("m")], [on("n")], {"m": "n"}),
        ([on("base"), on("v1")], [on("base"), on("v2")], {"base": "base", "v1": "v2"}),
        ([on("base"), on("v1")], [on("base")], {"base": "base"}),
        ([on("base")], [on("base"), on("v1"), on("v2")], {"base": "base"}),
    ],
)
def test_across_models_names_go_together_and_so_do_the_last_two(
    first: list[CaseRecord], second: list[CaseRecord], partners: dict[str, str]
) -> None:
    cases_a, cases_b = keyed(run_of(*first), run_of(*second), True)
    assert {cases_a[key].model: cases_b[key].model for key in cases_a if key in cases_b} == partners
    plain_a, plain_b = keyed(run_of(*first), run_of(*second), False)
    assert list(plain_a) == [c.case_id for c in first] and list(plain_b) == [c.case_id for c in second]


def test_where_several_models_are_left_over_it_is_asked_which() -> None:
    for first, second in (([on("a")], [on("b"), on("c")]), ([on("a"), on("b")], [on("c")])):
        with pytest.raises(UsageError) as caught:
            keyed(run_of(*first), run_of(*second), True)
        names = [", ".join(str(c.model) for c in side) for side in (first, second)]
        assert f"the first run holds {names[0]}, the second {names[1]}; give them" in str(caught.value)


def test_a_control_that_chose_its_model_is_no_model_to_be_paired() -> None:
    control = on("tiny", name="planted")
    first, second = (
        run_of(on("v1"), control, pinned=(control.case_id,)),
        run_of(control, on("v2"), pinned=(control.case_id,)),
    )
    cases_a, cases_b = keyed(first, second, True)
    assert {cases_a[key].model: cases_b[key].model for key in cases_a} == {"v1": "v2", "tiny": "tiny"}


def test_devices_are_matched_by_name_where_both_runs_have_the_same_and_else_left_out() -> None:
    both = [on("m", "cpu"), on("m", "cuda:0")]
    cases_a, cases_b = keyed(run_of(*both), run_of(*reversed(both)), True)
    assert {cases_a[key].device: cases_b[key].device for key in cases_a} == {"cpu": "cpu", "cuda:0": "cuda:0"}
    cases_a, cases_b = keyed(run_of(on("m", "cpu")), run_of(on("m", "mps")), True)
    assert list(cases_a) == list(cases_b)
    with pytest.raises(UsageError) as caught:
        keyed(run_of(on("m", "mps"), name="one"), run_of(*both, name="two"), True)
    assert "run two holds t.py::x[m@cpu-a] and t.py::x[m@cuda:0-a]" in str(caught.value)


def test_a_case_without_a_model_is_matched_by_its_id() -> None:
    bare = case("t.py::x[a]", "x.a", model=None)
    cases_a, cases_b = keyed(run_of(bare, on("v1")), run_of(bare, on("v2")), True)
    assert [key in cases_b for key in cases_a] == [True, True]


FAILED = Control("positive", False, "a gap", "none")


def test_what_is_compared_are_values_of_cases_that_are_no_controls_and_no_p_values() -> None:
    plain, test = case("a", "x.a", "x.only", headline="x.a"), case("b", "x.p", unit="p")
    controls = [case("c", "x.a", control=replace(FAILED, passed=True)), case("d", "x.a", role="negative")]
    after = [case("a", "x.a", "x.new", headline="x.a"), test, *controls]
    found = compare_runs(run_of(plain, test, *controls), run_of(*after))
    assert [(c.case_id, c.metric, c.audit) for c in found.changes] == [("a", "x.a", "x")]
    assert found.changes[0].direction == "same" and not found.failed


def test_what_came_went_and_changed_its_state_is_listed() -> None:
    before = run_of(case("a", "x.a", word="met"), case("b", "x.a"), case("same", "x.a", word="met"), name="one")
    after = run_of(case("a", "x.a", word="missed"), case("same", "x.a", word="met"), case("c", "x.a"), name="two")
    found = compare_runs(before, after)
    assert (found.a, found.b, found.appeared, found.vanished) == ("one", "two", ("c",), ("b",))
    assert [(s.case_id, s.before.name, s.after.name) for s in found.states] == [("a", "met", "missed")]


def test_remarks_say_what_makes_runs_hard_to_compare() -> None:
    whole = run_of(case("a", "x.a"), name="one")
    assert compare_runs(whole, whole).remarks == ()
    part = run_of(case("a", "x.a"), name="two", planned=("b", "c"))
    assert compare_runs(whole, part).remarks == ("two is incomplete: 2 planned cases never ended",)
    larger = run_of(case("a", "x.a"), size="standard")
    assert compare_runs(whole, larger).remarks == ("the runs differ in size: smoke and standard",)
    apart = compare_runs(whole, run_of(case("z", "x.a")))
    assert len(apart.remarks) == 1 and "no case is in both runs; --across-models" in apart.remarks[0]
    assert compare_runs(whole, run_of()).remarks == ()


def test_an_audit_that_was_measured_and_is_void_now_is_lost_once_with_its_reasons() -> None:
    measured = [case("a", "x.a"), case("b", "x.a"), case("n", "x.a", model="n"), case("other", "y.a", audit="y")]
    failed = case("c", control=FAILED, outcome="failed", role="positive")
    sound = replace(failed, last=replace(failed.last, control=replace(FAILED, passed=True), outcome="passed"))
    found = compare_runs(run_of(*measured, sound), run_of(*measured, failed))
    (lost,) = found.lost
    assert (lost.audit, lost.model) == ("x", "m") and found.failed
    assert any("expected a gap, observed none" in reason for reason in lost.reasons)
    assert {c.case_id: c.void for c in found.changes} == {"a": True, "b": True, "n": False, "other": False}
    assert {s.case_id: s.after.name for s in found.states} == {"a": "void", "b": "void", "c": "failed"}
    assert compare_runs(run_of(*measured, failed), run_of(*measured, failed)).lost == ()
    back = compare_runs(run_of(*measured, failed), run_of(*measured, sound))
    assert back.lost == () and {c.case_id for c in back.changes if c.void} == {"a", "b"}
    nothing = [case("a", "x.a", value=None)]
    assert compare_runs(run_of(*nothing, sound), run_of(*nothing, failed)).lost == ()


def test_an_audit_that_is_lost_is_found_behind_one_that_was_void_before() -> None:
    voided, sound = (case(name, control=FAILED, outcome="failed", role="positive", audit=name) for name in "yx")
    held = replace(sound, last=replace(sound.last, control=replace(FAILED, passed=True), outcome="passed"))
    first = [case("a", "y.a", audit="y"), case("b", "x.a")]
    found = compare_runs(run_of(voided, held, *first), run_of(voided, sound, *first))
    assert [lost.audit for lost in found.lost] == ["x"]


def test_a_metric_that_kept_its_value_alone_is_a_verdict_lost() -> None:
    """Without an interval and without rows nothing can be held against what decided before."""
    before, after = case("c", "x.a"), case("c", "x.a")
    bare = {name: replace(one, low=None, high=None) for name, one in after.last.metrics.items()}
    (one,) = compare_runs(run_of(before), run_of(replace(after, last=replace(after.last, metrics=bare)))).unmeasured
    assert (one.why, one.kind) == ("x.a: no interval, and no rows that both runs hold", "without")


def test_a_p_value_of_exactly_0_is_the_surest_of_all() -> None:
    """Of very many items an exact test can give it."""
    (found,) = adjusted([change(p=0.0, decided=True)])
    assert found.adjusted == 0.0 and found.direction == "worse"


def test_a_lost_verdict_is_found_behind_cases_that_lost_none() -> None:
    """What was never measured, was not selected, never ended or was skipped hides nothing that comes after it."""
    before = run_of(
        case("never", "x.a", value=None),
        case("unselected", "x.a"),
        case("unended", "x.a"),
        case("skipped", "x.a"),
        case("broke", "x.a"),
        case("lost", "x.a"),
    )
    after = run_of(
        case("never", "x.a", value=None),
        case("skipped", outcome="skipped"),
        case("broke", outcome="error"),
        case("lost", "x.a", value=None),
        planned=("unended",),
    )
    assert [(one.case_id, one.kind) for one in compare_runs(before, after).unmeasured] == [
        ("unended", "broke"),
        ("broke", "broke"),
        ("lost", "without"),
    ]


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (("x.a",), "x.a: not recorded"),
        (("x.a", "x.b"), "x.a: not recorded (and 1 more)"),
        (("x.a", "x.b", "x.c"), "x.a: not recorded (and 2 more)"),
    ],
)
def test_of_several_metrics_that_decided_a_case_the_first_is_named_and_the_others_counted(
    lost: tuple[str, ...], why: str
) -> None:
    names = ("x.a", "x.b", "x.c", "x.d")
    after = case("c", *(name for name in names if name not in lost))
    (one,) = compare_runs(run_of(case("c", *names)), run_of(after)).unmeasured
    assert one.why == why
