"""Which way is worse, how much matters, and how a finding moved, value by value."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.findings import Finding
from lm_audit.report.comparison.direction import Turn, contradictory, directions, turn, turned, worse_by_either
from lm_audit.report.comparison.finding_change import FindingChange, finding_changes
from lm_audit.report.comparison.margins import margin_of
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.runstore.records import Attempt, CaseRecord
from lm_audit.stats import Estimate


def value(x: float | None, better: str | None = None) -> Estimate:
    return Estimate(x, better=better, note="none")


@pytest.mark.parametrize(
    ("x", "better", "made"),
    [
        (2.0, "lower", Turn(1, 0.0)),
        (2.0, "higher", Turn(-1, 0.0)),
        (2.0, "neither", Turn(0, 0.0)),
        (2.0, None, Turn(0, 0.0)),
        (2.0, "target:1.5", Turn(1, 1.5)),
        (1.5, "target:1.5", Turn(1, 1.5)),
        (1.0, "target:1.5", Turn(-1, 1.5)),
        (None, "target:-1", Turn(1, -1.0)),
    ],
)
def test_a_value_is_turned_so_that_more_is_worse(x: float | None, better: str | None, made: Turn) -> None:
    assert turn(value(x, better)) == turned(value(x, "higher"), better) == made


def test_an_interval_is_turned_with_its_ends() -> None:
    told = Estimate(2.0, 1.0, 4.0, n=9)
    assert Turn(1, 0.5).estimate(told) == (1.5, 0.5, 3.5)
    assert Turn(-1, 0.5).estimate(told) == (-1.5, -3.5, -0.5)
    assert Turn(0).estimate(told) == (0, 0, 0) and Turn(0).estimate(Estimate(2.0, None, 4.0)) == (0, None, 0)
    assert Turn(-1).estimate(Estimate(2.0, None, 4.0)) == (-2.0, -4.0, None)
    assert Turn(1).estimate(value(None)) == (None, None, None)


@pytest.mark.parametrize(
    ("first", "second", "ways", "apart"),
    [
        ("lower", "lower", ("lower",), False),
        ("lower", "higher", ("lower", "higher"), True),
        ("lower", None, ("lower",), False),
        (None, "higher", ("higher",), False),
        ("neither", "lower", ("lower",), True),
        ("neither", "neither", (), False),
        (None, None, (), False),
        ("target:1", "target:2", ("target:1", "target:2"), True),
    ],
)
def test_directions_of_two_runs(first: str | None, second: str | None, ways: tuple[str, ...], apart: bool) -> None:
    sides = value(1.0, first), value(1.0, second)
    assert (directions(*sides), contradictory(*sides)) == (ways, apart)
    # What did not move is worse in no way.
    same = worse_by_either(*sides)
    assert same is (None if not ways else False)


@pytest.mark.parametrize(
    ("a", "b", "worse"),
    [
        ((1.0, "lower"), (2.0, "lower"), True),
        ((2.0, "lower"), (1.0, "lower"), False),
        ((1.0, "higher"), (2.0, None), False),
        ((2.0, None), (1.0, "higher"), True),
        ((1.0, "lower"), (2.0, "higher"), True),
        ((2.0, "lower"), (1.0, "higher"), True),
        ((1.0, "neither"), (2.0, None), None),
        # Across the target: 0.5 below is nearer than 1 above.
        ((2.0, "target:1"), (0.5, "target:1"), False),
        ((0.5, "target:1"), (2.0, "target:1"), True),
    ],
)
def test_worse_is_what_either_run_calls_so(
    a: tuple[float, str | None], b: tuple[float, str | None], worse: bool | None
) -> None:
    assert worse_by_either(value(*a), value(*b)) is worse


@pytest.mark.parametrize(
    ("unit", "margin"),
    [
        ("%", 5.0), ("Percentage Points", 5.0), ("Share of items", 0.05), ("AP", 0.05), ("auc", 0.05),
        ("nats", None), ("items in a share", None), (None, None),
    ],
)  # fmt: skip
def test_five_points_matter_of_what_is_a_share(unit: str | None, margin: float | None) -> None:
    assert margin_of(Estimate(0.5, unit=unit), None) == margin
    assert margin_of(Estimate(0.5, unit=unit), 0.0) == 0.0


def finding(key: str, verdict: Any, **more: Any) -> Finding:
    return Finding(key, verdict, "it does", "it does not", "does it?", metric=f"x.{key}", size=f"{key} of 100", **more)


def case(name: str, *findings: Finding) -> CaseRecord:
    return CaseRecord(name, "x", "m", "cpu", None, Attempt(1, "passed", "main", 1.0, findings=findings))


def change(name: str, metric: str, adjusted: float) -> MetricChange:
    sides = Estimate(1.0, better="lower"), Estimate(2.0, better="lower")
    return MetricChange(name, name, "x", metric, *sides, Estimate(1.0), 0.01, "paired", adjusted=adjusted)


def test_findings_of_both_sides_go_together_by_key_those_that_moved_first() -> None:
    control = finding("c", "found", kind="control")
    before = case(
        "a", finding("same", "found"), finding("gone", "found"), finding("minor", "found", headline=False), control
    )
    after = case("b", finding("minor", "cannot tell"), finding("same", "found"), finding("new", "found"), control)
    second = case("s", finding("k", "not found")), case("t", finding("k", "found"))
    changes = [change("a", "x.same", 0.01), change("a", "x.minor", 0.5), change("s", "x.same", 0.01)]
    found = finding_changes([(before, after, False), (*second, True)], changes)
    assert [(one.a.key, one.moved, one.direction, one.void) for one in found] == [
        ("k", True, None, True),
        ("minor", True, "not shown", False),
        ("same", False, "worse", False),
    ]
    assert [(one.audit, one.case_id, one.case_id_b) for one in found[:2]] == [("x", "s", "t"), ("x", "a", "b")]
    assert found[0].to_json() == {
        "key": "k", "audit": "x", "case_id": "s", "case_id_b": "t", "moved": True, "direction": None, "void": True,
        "a": {"verdict": "not found", "statement": "it does not", "size": ""},
        "b": {"verdict": "found", "statement": "it does", "size": "k of 100"},
    }  # fmt: skip


def test_a_finding_that_rests_on_no_metric_has_no_direction() -> None:
    bare = Finding("k", "found", "a", "b", "c")
    (found,) = finding_changes([(case("a", bare), case("b", bare), False)], [change("a", "x.k", 0.01)])
    assert found == FindingChange("x", "a", "b", bare, bare, None)
