"""What a comparison says in the terminal, on the page and in summary.json, of changes that were made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.evidence import Control
from lm_audit.findings import Finding, claim
from lm_audit.report.comparison.finding_change import FindingChange
from lm_audit.report.comparison.losing import LostAudit, Unmeasured
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.report.comparison.models_compared import _of_model, compared_models, told_comparisons
from lm_audit.report.comparison.rows import row_of
from lm_audit.report.comparison.runs import RunComparison, StateChange
from lm_audit.report.comparison.text import change_text, comparison_lines, undecidable
from lm_audit.report.page.interval_bar import Scale, bar
from lm_audit.report.page.states import State
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.runstore.records import Attempt, CaseRecord, PlannedCase, Run
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

CASE = "evals/test_x.py::test_a[m@cpu-one]"


def change(
    a: float = 0.2, b: float = 0.6, adjusted: float | None = None, metric: str = "x.m", **more: Any
) -> MetricChange:
    """A change of a share that is better the lower it is."""
    sides = [Estimate(v, v - 0.125, v + 0.125, n=60, better="lower", unit="share") for v in (a, b)]
    difference = Estimate(b - a, b - a - 0.25, b - a + 0.25, n=60, unit="share")
    known: dict[str, Any] = {
        "case_id": CASE,
        "case_id_b": CASE,
        "audit": "x",
        "metric": metric,
        "difference": difference,
    }
    known |= {"p": 0.5, "basis": "paired", "pairs": 60, "clusters": 60, "adjusted": adjusted}
    return MetricChange(a=sides[0], b=sides[1], **(known | more))


def compared(*changes: MetricChange, **more: Any) -> RunComparison:
    """Runs one and two with these changes."""
    return RunComparison("one", "two", changes, **({"states": (), "appeared": (), "vanished": ()} | more))


NOTHING = Estimate.not_estimable("no value in one of the runs")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (change(identical=True), "60 pairs, all the same"),
        (change(identical=True, pairs=0), "the same value and interval"),
        (change(), "60 pairs"),
        (change(clusters=12), "60 pairs, 12 clusters"),
        (
            change(clusters=12, only_a=3, only_b=4, others=5),
            "60 pairs, 12 clusters, 3 only in A, 4 only in B, 5 of other data",
        ),
        (change(basis="two samples", pairs=0, only_a=60, only_b=60), "other items: two samples"),
        (change(basis="intervals", pairs=0), "from intervals"),
        (change(basis="none", pairs=0, difference=NOTHING), "no value in one of the runs"),
        (change(basis="none", pairs=0, difference=Estimate(0.4)), "no interval"),
        (change(equivalent=True, margin=0.05), "60 pairs, differs by less than 0.05"),
        (change(equivalent=True, margin=0.05, adjusted=0.01), "60 pairs"),
        (change(equivalent=True), "60 pairs"),
        (change(margin=0.05), "60 pairs"),
        (change(able=False), "60 pairs, too few items that moved to decide"),
        (change(able=False, p=None), "60 pairs"),
    ],
)
def test_the_basis_of_a_change_in_words(made: MetricChange, words: str) -> None:
    assert change_text(made) == words


def finding(verdict: Any, statement: str) -> Finding:
    """A finding that says ``statement``, whatever its verdict."""
    return Finding("k", verdict, statement, statement, statement)


def test_all_that_differs_as_lines() -> None:
    moved = [
        FindingChange("x", CASE, CASE, finding(*first), finding(*second), direction, void=void)  # type: ignore[arg-type]
        for first, second, direction, void in (
            (("found", "It did"), ("not found", "It does not"), "better", False),
            (("cannot tell", "Does it?"), ("found", "It does"), None, False),
            (("found", "It is void"), ("not found", "Void"), "better", True),
            (("found", "As before"), ("found", "As before"), "same", False),
        )
    ]
    comparison = compared(
        change(metric="x.explored", adjusted=0.001, decided=False),
        change(metric="x.unsure", adjusted=0.3),
        change(metric="x.gone", difference=NOTHING, basis="none", p=None, pairs=0, clusters=0, b=0.4),
        change(metric="x.gone_too", difference=NOTHING, basis="none", p=None, pairs=0, clusters=0, b=0.4),
        change(metric="x.later", adjusted=0.04, case_id=CASE.replace("::", "::TestOf::")),
        change(metric="x.void", adjusted=0.04, void=True),
        change(metric="x.first", adjusted=0.001),
        change(metric="x.good", adjusted=0.001, a=0.6, b=0.2),
        change(metric="x.same", identical=True),
        change(metric="x.unable", able=False, adjusted=0.5),
        change(metric="x.beside", difference=NOTHING, basis="none", p=None, pairs=0, clusters=0, decided=False),
        findings=tuple(moved),
        lost=(LostAudit("x", "m", ("one reason", "another")), LostAudit("y", None, ("why",), skipped=True)),
        unmeasured=(
            Unmeasured(CASE, State("error")),
            Unmeasured(CASE, State("reported"), "x.m", "other units: a and b", kind="refused"),
        ),
        states=(StateChange(CASE, State("met"), State("missed")),),
        appeared=("new",),
        vanished=("old",),
        remarks=("a remark",),
    )
    first, header, *lines = comparison_lines(comparison, width=150)
    assert first == "one \u2192 two"
    assert header.split("case") == [
        " " * 23,
        "               metric       A     B  B \u2212 A  interval        p, adjusted  basis",
    ]
    # Words begin where their heading does, numbers end there.
    assert lines[0][23:].startswith("test_a[m@cpu-one]  first     0.20  0.60   0.40  [0.15, 0.65]         0.0010  60")
    assert [" ".join(line.split()) for line in lines] == [
        "\u2193 worse test_a[m@cpu-one] first 0.20 0.60 0.40 [0.15, 0.65] 0.0010 60 pairs",
        "\u2193 worse test_a[m@cpu-one] later 0.20 0.60 0.40 [0.15, 0.65] 0.040 60 pairs",
        "\u2298 void test_a[m@cpu-one] void 0.20 0.60 0.40 [0.15, 0.65] 0.040 60 pairs",
        "\u2191 better test_a[m@cpu-one] good 0.60 0.20 \u22120.40 [\u22120.65, \u22120.15] 0.0010 60 pairs",
        "? not comparable test_a[m@cpu-one] gone 0.20 0.40 \u2013 no value in one of the runs",
        "? not comparable test_a[m@cpu-one] gone too 0.20 0.40 \u2013 no value in one of the runs",
        "\u2193 worse (exploratory) test_a[m@cpu-one] explored 0.20 0.60 0.40 [0.15, 0.65] 0.0010 60 pairs",
        "finding: It does not (found \u2192 not found; the change itself: better)",
        "finding: It does (cannot tell \u2192 found; the change itself: not compared)",
        "void now: x on m: one reason; another",
        "skipped now: y: why",
        f"not measured now: {CASE}: error",
        f"not comparable now: {CASE}: x.m: other units: a and b",
        f"state: {CASE}: met \u2192 missed",
        "appeared: new",
        "vanished: old",
        "note: a remark",
        "11 metrics compared; 9 decided: 2 worse, 1 better, 2 not comparable, 2 not shown, 1 same, 1 void; "
        "2 exploratory: 1 worse, 1 not comparable",
        "1 audit void that was measured before",
        "1 audit skipped that was measured before",
        "1 case of other data or another unit, which cannot be compared",
        "1 case that was measured before broke",
        "1 headline moved in too few items, or had too few, for any test to find a regression",
        "2 significant regressions at 5 %, adjusted among the headlines",
    ]


def test_what_is_many_is_counted_and_no_more_than_forty_are_shown() -> None:
    def lines(many: int) -> list[str]:
        changes = (change(adjusted=0.01, metric=f"x.m{at}") for at in range(many))
        two = (finding("found", "It did"), finding("not found", "It does not"))
        moved = tuple(FindingChange("x", CASE, CASE, *two, "better") for _ in range(many))
        lost = tuple(LostAudit(str(at), None, ("why",)) for at in range(2))
        return comparison_lines(compared(*changes, findings=moved, lost=lost), width=150)

    assert not any(line.startswith("and ") for line in lines(40))
    told = lines(43)
    assert [line for line in told if line.startswith("and ")] == [
        "and 3 more: --html FILE shows all",
        "and 3 more findings: --html FILE shows all",
    ]
    assert sum("finding: " in line for line in told) == sum("worse  " in line for line in told) == 40
    assert "2 audits void that were measured before" in told
    assert told[-1] == "43 significant regressions at 5 %, adjusted among the headlines"
    unable = [change(able=False), change(p=None), change(able=False, void=True), change(able=False, decided=False)]
    assert undecidable(compared(*unable)) == 2
    assert "2 headlines moved in too few items, or had too few, for any test to find a regression" in comparison_lines(
        compared(*unable)
    )
    assert comparison_lines(compared(incomparable=True)) == [
        "one \u2192 two",
        "0 metrics compared; none",
        "nothing could be compared: no metric of a case has a place in both runs",
    ]
    assert comparison_lines(compared(change(adjusted=0.01)))[-1].startswith("1 significant regression at")


def test_lines_are_folded_and_coloured_as_the_terminal_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And by nothing else."""
    monkeypatch.setenv("NO_COLOR", "1")

    def lines(made: MetricChange, **options: Any) -> list[str]:
        return comparison_lines(compared(made), **options)

    reason = "".join(f"{at:03}" for at in range(120))
    long = change(difference=Estimate.not_estimable(reason), basis="none", p=None)
    options: dict[str, Any]
    for options, width in (({}, 100), ({"width": 80}, 80), ({"width": 20}, 60)):
        told = lines(long, **options)[1:-2]
        assert max(map(len, told)) == width
        assert "".join(line.split()[-1] for line in told[1:]).endswith(reason)
    assert not any("\x1b" in line for line in lines(long))
    for made, code in (
        (change(adjusted=0.01), "1;31"),
        (change(adjusted=0.01, a=0.6, b=0.2), "34"),
        (change(adjusted=0.01, void=True), "9"),
    ):
        header, row = lines(made, width=150, color=True)[1:3]
        assert row.startswith(f"\x1b[{code}m") and "\x1b[2m" in header


def test_what_summary_json_holds_of_a_comparison() -> None:
    kept = [
        change(adjusted=0.2, only_a=1),
        change(adjusted=0.01, void=True),
        change(adjusted=0.01, decided=False, case_id_b="b"),
    ]
    around = [Estimate(v, v - 0.1, v + 0.1, n=60, better="target:0.5") for v in (0.3, 0.7)]
    kept.append(replace(change(adjusted=0.5, decided=False), a=around[0], b=around[1]))
    left_out = [change(adjusted=0.2, decided=False), change(adjusted=0.01, decided=False, void=True)]
    effect = kept[0].a
    asked = {"found": "It does", "absent": "It does not", "unknown": "Does it?", "null": 0.0, "metric": "x.m"}
    told = claim("k", effect, **asked)  # type: ignore[arg-type]
    finding_change = FindingChange("x", CASE, CASE, told, told, "same")
    (found,) = told_comparisons(
        [
            compared(
                *kept,
                *left_out,
                findings=(finding_change,),
                lost=(LostAudit("x", "m", ("one", "two")),),
                unmeasured=(Unmeasured("c", State("reported"), "x.m", "why", kind="without"),),
                remarks=("a remark",),
            )
        ]
    )
    first, second, third, fourth = found.pop("changes")
    assert found == {
        "a": "one",
        "b": "two",
        "findings": [finding_change.to_json()],
        "lost": [{"audit": "x", "reasons": ["one", "two"]}],
        "unmeasured": [{"case_id": "c", "state": "reported", "lacks": "x.m", "reason": "why"}],
        "remarks": ["a remark"],
    }
    assert first == {
        "audit": "x",
        "metric": "x.m",
        "case_id": CASE,
        "case_id_b": CASE,
        "a": kept[0].a.to_json(),
        "b": kept[0].b.to_json(),
        "difference": kept[0].difference.to_json(),
        "p": 0.5,
        "adjusted": 0.2,
        "direction": "not shown",
        "decided": True,
        "basis": "paired",
        "pairs": 60,
    }
    assert (second["direction"], third["direction"], fourth["direction"]) == ("void", "worse", "reversed")
    assert (third["case_id_b"], third["decided"]) == ("b", False)


def test_a_change_as_a_row_of_the_page() -> None:
    told = row_of(change(adjusted=0.04, metric="x.rate"))
    assert [told[name] for name in ("tone", "word", "label", "difference", "interval", "p", "basis")] == [
        "missed", "worse", "rate", "0.40", "[0.15, 0.65]", "0.040", "60 pairs",
    ]  # fmt: skip
    assert told["state"] == State("reported")
    made = change(adjusted=0.04, metric="x.rate")
    for side, of in (("a", made.a), ("b", made.b)):
        assert told[side] == (value_text(of), bar(of, Scale(0.0, 1.0)), interval_text(of))
    void = row_of(change(adjusted=0.04, void=True))
    assert (void["state"], void["tone"], void["word"]) == (State("void"), "void", "void")


def test_the_bar_of_a_change_reaches_as_far_to_both_sides_of_nothing() -> None:
    for value, half in ((0.0, 0.25), (0.5, 0.25), (-0.5, 0.25), (0.0, 0.0)):
        reach = 1.1 * (abs(value) + half) or 1.0
        difference = Estimate(value, value - half, value + half, n=60)
        shown = row_of(change(difference=difference))["bar"]
        assert shown == bar(replace(difference, chance=0.0), Scale(-reach, reach))
    assert row_of(change(difference=NOTHING))["bar"] == ""


def test_models_are_compared_by_the_seed_and_each_with_its_own_cases() -> None:
    """Controls of no model, and those that chose theirs, are of every model; what another model is asked is of none."""
    control = Control("positive", True, "a", "b")

    def case(case_id: str, model: str | None, *, control_of: Control | None = None) -> CaseRecord:
        return CaseRecord(case_id, "x", model, "cpu", None, Attempt(1, "passed", "main", 1.0, control=control_of))

    cases = (
        case("one", "a"),
        case("other", "b"),
        case("bare control", None, control_of=control),
        case("chosen", "tiny", control_of=control),
        case("its control", "b", control_of=control),
        case("bare", None),
    )
    plan = (
        *(PlannedCase(one.case_id, "x", one.model, pinned=one.case_id == "chosen") for one in cases),
        PlannedCase("never", "x", "a"),
        PlannedCase("never of b", "x", "b"),
        PlannedCase("never chosen", "x", "tiny", control_role="negative", pinned=True),
        PlannedCase("never of tiny", "x", "tiny", pinned=True),
        PlannedCase("never a control", "x", "tiny", control_role="negative"),
    )
    run = Run("r", Path("r"), 1, {}, cases, tuple(one.case_id for one in plan), finished=True, plan=plan)
    kept = _of_model(run, "a")
    assert [one.case_id for one in kept.cases] == ["one", "bare control", "chosen"]
    assert kept.planned == ("one", "bare control", "chosen", "never", "never chosen")
    assert [one.case_id for one in kept.plan] == list(kept.planned) and kept.run_id == "a"
    assert [(one.a, one.b) for one in compared_models(run)] == [("a", "b")]
    assert compared_models(replace(run, cases=cases[5:])) == []


def test_models_are_compared_by_the_seed_that_is_given(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cases = [
        MadeCase(
            CASE.replace("[m@", f"[{model}@"), "x", model,
            metrics={"x.v": Estimate(at, at - 0.3, at + 0.3, 40)}, sources={"x.v": MetricSource.mean("v")},
            rows=[{"item": f"i{k}", "v": float(value)} for k, value in enumerate(rng.normal(at, 1.0, 40))],
        )
        for model, at in (("a", 0.0), ("b", 0.3))
    ]  # fmt: skip
    run = read_run(write_run(tmp_path / "r", cases))
    default, *others = (compared_models(run, **seed)[0].changes[0].p for seed in ({}, {"seed": 0}, {"seed": 1}))
    assert default == others[0] != others[1]
