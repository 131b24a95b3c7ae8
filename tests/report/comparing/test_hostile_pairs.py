"""Pairs of runs that were made to deceive a comparison: a regression must not pass, and none may be invented."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.evidence import Control
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import RunComparison, compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

Rows = list[dict[str, Any]]
Values = Sequence[float | None] | np.ndarray[Any, Any]
MEAN = MetricSource.mean("v")
RNG = np.random.default_rng(7)
BASE = RNG.normal(size=40)
NOISE = RNG.normal(0, 0.05, size=40)


def rows_of(values: Values, **columns: Sequence[Any]) -> Rows:
    return [
        {"item": f"i{k}", "v": None if v is None else float(v), **{name: given[k] for name, given in columns.items()}}
        for k, v in enumerate(values)
    ]


def case(
    values: Values | None,
    name: str = "c",
    *,
    source: MetricSource = MEAN,
    metric: str = "x.v",
    better: str = "lower",
    model: str = "m",
    audit: str = "x",
    columns: Mapping[str, Sequence[Any]] | None = None,
    **more: Any,
) -> MadeCase:
    rows = [] if values is None else rows_of(values, **(columns or {}))
    known = [row["v"] for row in rows if row["v"] is not None and math.isfinite(row["v"])]
    value = Estimate(float(np.mean(known)), n=len(known), better=better) if known else Estimate.not_estimable("none")
    fields: dict[str, Any] = {"metrics": {metric: value}, "rows": rows, "sources": {metric: source}} | more
    return MadeCase(f"evals/t_{audit}.py::t[{model}@cpu-{name}]", audit, model, **fields)


def renamed(made: MadeCase) -> MadeCase:
    return replace(made, rows=[{**row, "item": f"other-{row['item']}"} for row in made.rows])


def interval(value: float | None, half: float = 0.05, n: int = 50, name: str = "c", **more: Any) -> MadeCase:
    made = (
        Estimate.not_estimable("none")
        if value is None
        else Estimate(value, value - half, value + half, n, better="lower", **more)
    )
    return MadeCase(f"evals/t_x.py::t[m@cpu-{name}]", "x", "m", metrics={"x.v": made})


def control(passed: bool | None) -> MadeCase:
    found = None if passed is None else Control("positive", passed, "found", "found" if passed else "nothing")
    outcome = "skipped" if passed is None else "passed" if passed else "failed"
    return MadeCase(
        "evals/t_x.py::t_control[m@cpu-p]", "x", "m", outcome=outcome, control=found, control_role="positive"
    )


def compared(folder: Path, a: Sequence[MadeCase], b: Sequence[MadeCase], **options: Any) -> RunComparison:
    return compare_runs(*(read_run(write_run(folder / n, cases)) for n, cases in (("a", a), ("b", b))), **options)


def outlier(shift: float) -> np.ndarray[Any, Any]:
    values = BASE + shift
    values[0] = 1e7
    return values


def gone(values: np.ndarray[Any, Any], many: int, what: float | None = math.nan) -> list[float | None]:
    return [what if k < many else float(v) for k, v in enumerate(values)]


HALVES = BASE + 10.0 * (np.arange(40) < 20)
"""Half of the items lie far above the others, so that without them the mean is lower whatever changed."""


def auc_case(values: Values) -> MadeCase:
    """24 members, then their controls; a higher AUC is worse."""
    role = ["m"] * 24 + ["c"] * (len(values) - 24)
    source = MetricSource.members("auc", "v", {"role": "m"}, {"role": "c"})
    given = case(values, source=source, columns={"role": role})
    of = [[v for v, r in zip(values, role, strict=True) if r == side and v is not None] for side in "mc"]
    area = float(np.mean([(m > c) + (m == c) / 2 for m in of[0] for c in of[1]]))
    return replace(given, metrics={"x.v": Estimate(area, n=len(values), better="lower")})


WRITERS = {"writer": [f"w{k // 4}" for k in range(40)]}
UNKNOWN: dict[str, Sequence[Any]] = {"writer": [None] * 40}
CLUSTERED = MetricSource.mean("v", clusters=("writer",))
SHARE = [float(k % 2) for k in range(40)]
Pair = tuple[list[MadeCase], list[MadeCase]]


def both(sides: Iterable[list[MadeCase]]) -> Pair:
    first, second = sides
    return first, second


WORSE: dict[str, Callable[[], Pair]] = {
    "one value far out, all others moved": lambda: ([case(outlier(0))], [case(outlier(100.0))]),
    "most values alike, all moved": lambda: ([case([0.0] * 39 + [1e6])], [case([5.0] * 39 + [1e6])]),
    "a tiny move of a tiny spread": lambda: ([case(1e-9 * BASE)], [case(1e-9 * (BASE + 2 + NOISE))]),
    "a move far from 0": lambda: ([case(1e3 + BASE)], [case(1e3 + BASE + 2 + NOISE)]),
    "huge values": lambda: ([case(1e150 * BASE)], [case(1e150 * (BASE + 2 + NOISE))]),
    "a tenth lost as NaN": lambda: ([case(BASE)], [case(gone(BASE + 2 + NOISE, 4))]),
    "a tenth infinite": lambda: ([case(BASE)], [case(gone(BASE + 2 + NOISE, 4, math.inf))]),
    "half of the items run": lambda: ([case(BASE)], [case((BASE + 2 + NOISE)[:20])]),
    "more items than before": lambda: ([case(BASE[:20])], [case(BASE + 2 + NOISE)]),
    "each worse, the worst lost": lambda: ([case(HALVES)], [case(gone(HALVES + 2 + NOISE, 20))]),
    "each worse, better ones joined": lambda: ([case(gone(-HALVES, 20))], [case(-HALVES + 2 + NOISE)]),
    "wrong answers more, of fewer hard questions": lambda: (
        [case([0.0] * 22 + [1.0] * 18, better="higher")],
        [case([None] * 22 + [0.0] * 8 + [1.0] * 10, better="higher")],
    ),
    "further from a target, the far ones lost": lambda: (
        [case(HALVES, better="target:0")],
        [case(gone(HALVES + 2 + NOISE, 20), better="target:0")],
    ),
    "an AUC that grew, of members that lay lower": lambda: (
        [auc_case([*np.arange(0, 12), *np.arange(40, 52), *np.arange(20, 44)])],
        [auc_case([*np.arange(0, 12) + 20, *[None] * 12, *np.arange(20, 44)])],
    ),
    "items in another order": lambda: (
        [case(BASE)],
        [replace(case(BASE + 2 + NOISE), rows=rows_of(BASE + 2 + NOISE)[::-1])],
    ),
    "clusters named in the second run alone": lambda: (
        [case(BASE, source=CLUSTERED, columns=UNKNOWN)],
        [case(BASE + 2 + NOISE, source=CLUSTERED, columns=WRITERS)],
    ),
    "clusters named in the first run alone": lambda: (
        [case(BASE, source=CLUSTERED, columns=WRITERS)],
        [case(BASE + 2 + NOISE, source=CLUSTERED, columns=UNKNOWN)],
    ),
    "clusters of other names": lambda: (
        [case(BASE, source=CLUSTERED, columns=WRITERS)],
        [case(BASE + 2 + NOISE, source=CLUSTERED, columns={"writer": [f"z{k // 4}" for k in range(40)]})],
    ),
    "a margin that grew": lambda: ([case(BASE)], [case(BASE + 2 + NOISE, source=replace(MEAN, margin=50.0))]),
    "a margin that went": lambda: ([case(BASE, source=replace(MEAN, margin=50.0))], [case(BASE + 2 + NOISE)]),
    "a higher score is better": lambda: ([case(BASE, better="higher")], [case(BASE - 2 + NOISE, better="higher")]),
    "away from a target, from both sides": lambda: (
        [case(BASE - 1, better="target:0")],
        [case(BASE + 4 + NOISE, better="target:0")],
    ),
    "the direction turned": lambda: ([case(BASE)], [case(BASE + 2 + NOISE, better="higher")]),
    "right answers became wrong": lambda: ([case([1.0] * 40, better="higher")], [case([0.0] * 40, better="higher")]),
    "one headline of many": lambda: (
        [case(BASE, str(k)) for k in range(30)],
        [case(BASE + (2 + NOISE) * (k == 7), str(k)) for k in range(30)],
    ),
    "among cases that have too few items": lambda: (
        [case(BASE, "big"), *(case(BASE[:2], str(k)) for k in range(30))],
        [case(BASE + 2 + NOISE, "big"), *(case(BASE[:2] + k, str(k)) for k in range(30))],
    ),
    "a headline among metrics that got better": lambda: both(
        [
            replace(
                one,
                metrics={
                    **one.metrics,
                    **{f"x.{k}": Estimate(v, v - 0.01, v + 0.01, 90, better="lower") for k in range(9)},
                },
            )
        ]
        for one, v in ((case(BASE), 0.9), (case(BASE + 2 + NOISE), 0.1))
    ),
    "one model of two": lambda: (
        [case(BASE, model=m) for m in ("base", "mine")],
        [case(BASE, model="base"), case(BASE + 2 + NOISE, model="mine")],
    ),
    "intervals of one run with rows": lambda: ([interval(0.2)], [interval(0.9)]),
    "intervals of huge values": lambda: ([interval(1e90, half=1e88)], [interval(2e90, half=1e88)]),
    "two samples of huge values": lambda: ([case(1e150 * BASE)], [renamed(case(1e150 * (BASE + 3 + NOISE)))]),
    "intervals of other sizes": lambda: ([interval(0.2, n=500)], [interval(0.9, half=0.1, n=20)]),
    "a second headline": lambda: (
        [case(BASE, headline="x.v")],
        [
            case(
                BASE + 2 + NOISE,
                headline="x.new",
                metrics={"x.v": Estimate(2.0, n=40, better="lower"), "x.new": Estimate(0.1, 0.0, 0.2, 40)},
            )
        ],
    ),
}

LOST: dict[str, Callable[[], Pair]] = {
    "the headline has no value": lambda: ([case(BASE), case(BASE, "d")], [case([math.nan] * 40), case(BASE, "d")]),
    "the headline has no value, without rows": lambda: (
        [interval(0.2), interval(0.2, name="d")],
        [interval(None), interval(0.2, name="d")],
    ),
    "the headline has neither interval nor rows": lambda: (
        [interval(0.2), interval(0.2, name="d")],
        [case(None, metrics={"x.v": Estimate(0.9, n=3, better="lower")}), interval(0.2, name="d")],
    ),
    "a control failed in the second run": lambda: ([case(BASE), control(True)], [case(BASE), control(False)]),
    "the case crashed": lambda: (
        [case(BASE), case(BASE, "d")],
        [case(None, outcome="crashed", metrics={}), case(BASE, "d")],
    ),
    "the case passes and records nothing": lambda: (
        [case(BASE), case(BASE, "d")],
        [case(None, metrics={}), case(BASE, "d")],
    ),
    "the headline bears another name": lambda: (
        [case(BASE), case(BASE, "d")],
        [case(BASE, metric="x.w"), case(BASE, "d")],
    ),
    "every model bears another name": lambda: ([case(BASE)], [case(BASE, model="n")]),
    "all its cases are skipped": lambda: (
        [case(BASE), case(BASE, audit="y")],
        [case(None, outcome="skipped", metrics={}), case(BASE, audit="y")],
    ),
    "the unit is another": lambda: (
        [case(SHARE, metrics={"x.v": Estimate(0.5, n=40, unit="share")})],
        [case(SHARE, metrics={"x.v": Estimate(50.0, n=40, unit="%")})],
    ),
}

SOUND: dict[str, Callable[[], Pair]] = {
    "nothing moved": lambda: ([case(BASE)], [case(BASE)]),
    "another processor": lambda: ([case(BASE)], [case(BASE * (1 + 3e-7) + 2e-6)]),
    "another processor, values far from 0": lambda: ([case(5e4 + BASE)], [case((5e4 + BASE) * (1 + 2e-9))]),
    "another processor, most values alike": lambda: (
        [case([-8.0] * 36 + [1.0, 2, 3, 4])],
        [case([-8.00001] * 36 + [1.0, 2, 3, 4])],
    ),
    "noise alone": lambda: ([case(BASE)], [case(BASE + NOISE - NOISE.mean())]),
    "it got better": lambda: ([case(BASE)], [case(BASE - 2 + NOISE)]),
    "each better, the best lost": lambda: ([case(-HALVES)], [case(gone(-HALVES - 2 + NOISE, 20))]),
    "each better, worse ones joined": lambda: ([case(gone(HALVES, 20))], [case(HALVES - 2 + NOISE)]),
    "nearer to a target, the near ones lost": lambda: (
        [case(HALVES - 9, better="target:0")],
        [case(gone(HALVES - 7 + NOISE, 20), better="target:0")],
    ),
    "across a target, as near as before": lambda: (
        [case(BASE - 3, better="target:0")],
        [case(BASE + 3, better="target:0")],
    ),
    "all values are one": lambda: ([case([1.0] * 40)], [case([1.0] * 40)]),
    "one item": lambda: ([case(BASE[:1])], [case(BASE[:1] + 9)]),
    "five items": lambda: ([case(BASE[:5])], [case(BASE[:5] + 9)]),
    "one cluster": lambda: both(
        [case(values, source=CLUSTERED, columns={"writer": ["w"] * 40})] for values in (BASE, BASE + 2)
    ),
    "three clusters that all moved": lambda: both(
        [case(values, source=CLUSTERED, columns={"writer": [f"w{k % 3}" for k in range(40)]})]
        for values in (BASE, BASE + 2)
    ),
    "one answer of forty": lambda: ([case(SHARE)], [case([1.0, *SHARE[1:]])]),
    "intervals without width": lambda: (
        [interval(0.2, half=0.0), case(BASE, "d")],
        [interval(0.3, half=0.0), case(BASE, "d")],
    ),
    "intervals of four values": lambda: ([interval(0.2, n=4), case(BASE, "d")], [interval(0.9, n=4), case(BASE, "d")]),
    "a new case": lambda: ([case(BASE)], [case(BASE), case(BASE + 9, "new")]),
    "a new metric": lambda: (
        [case(BASE)],
        [replace(case(BASE), metrics={**case(BASE).metrics, "x.new": Estimate(9.0, 8, 10, 40)})],
    ),
    "a value where there was none": lambda: ([case([math.nan] * 40), case(BASE, "d")], [case(BASE), case(BASE, "d")]),
    "a control that failed before": lambda: ([case(BASE), control(False)], [case(BASE + 2 + NOISE), control(False)]),
    "a control's own numbers": lambda: both(
        [case(BASE), replace(case(v, "p"), control=Control("positive", True, "x", "y"))] for v in (BASE, BASE + 9)
    ),
    "other metrics than the headline": lambda: both(
        [replace(case(BASE), metrics={**case(BASE).metrics, "x.o": Estimate(v, v - 0.1, v + 0.1, 90, better="lower")})]
        for v in (0.0, 9.0)
    ),
    "no direction": lambda: ([case(BASE, better="neither")], [case(BASE + 2 + NOISE, better="neither")]),
    "infinite in both runs": lambda: ([case(gone(BASE, 3, math.inf))], [case(gone(BASE, 3, math.inf))]),
    "not selected": lambda: ([case(BASE), case(BASE, "d")], [case(BASE)]),
}


@pytest.mark.parametrize("kind", WORSE)
def test_a_regression_is_found(kind: str, tmp_path: Path) -> None:
    found = compared(tmp_path, *WORSE[kind]())
    assert found.regressions and found.failed, [
        (c.metric, c.direction, c.basis, c.p, c.difference) for c in found.changes
    ]


@pytest.mark.parametrize("kind", LOST)
def test_a_verdict_that_is_lost_is_no_pass(kind: str, tmp_path: Path) -> None:
    found = compared(tmp_path, *LOST[kind]())
    assert found.failed and not found.regressions


@pytest.mark.parametrize("kind", SOUND)
def test_no_regression_is_invented(kind: str, tmp_path: Path) -> None:
    found = compared(tmp_path, *SOUND[kind]())
    assert not found.failed, [(c.metric, c.direction, c.basis, c.p, c.difference) for c in found.changes]
    assert "NaN" not in render_comparison(found)


def test_items_whose_value_is_lost_are_told_whatever_the_others_show(tmp_path: Path) -> None:
    found = compared(tmp_path, [case(BASE)], [case(gone(BASE, 15))])
    assert any("15 of 40 items of x.v have no value in B" in line for line in comparison_lines(found))


def test_what_a_change_was_computed_on_is_told_where_a_run_lacks_items(tmp_path: Path) -> None:
    found = compared(tmp_path, [case([1.0, 3.0] * 20)], [case([None, 2.0] * 20)])
    assert (found.changes[0].direction, found.changes[0].ends) == ("better", (3.0, 2.0))
    assert any(
        "20 pairs, 20 only in A, 3 \u2192 2 on the pairs" in " ".join(line.split())
        for line in comparison_lines(found, width=200)
    )


def test_a_target_is_crossed_by_what_was_compared(tmp_path: Path) -> None:
    def made(values: Values, value: float) -> list[MadeCase]:
        side = Estimate(value, value - 0.5, value + 0.5, 40, better="target:5", unit="nats")
        return [case(values, metrics={"x.v": side})]

    crossed = compared(tmp_path / "1", made(BASE + 7, 7.0), made(3 - BASE, 3.0))
    assert crossed.changes[0].direction == "reversed"
    lost = compared(tmp_path / "2", made(HALVES, 7.0), made(gone(HALVES + NOISE - NOISE[20:].mean(), 20), 3.0))
    assert lost.changes[0].direction == "not shown"


def test_items_that_only_the_second_run_has_are_told(tmp_path: Path) -> None:
    found = compared(tmp_path, [case(gone(BASE, 15))], [case(BASE)])
    assert any("15 of 40 items of x.v have no value in A" in line for line in comparison_lines(found))


@pytest.mark.parametrize(("left", "word"), [(1, "not shown"), (5, "not shown"), (6, "same"), (40, "same")])
def test_a_few_items_that_are_left_do_not_say_that_all_are_the_same(left: int, word: str, tmp_path: Path) -> None:
    assert compared(tmp_path, [case(BASE)], [case(BASE[:left])]).changes[0].direction == word
    alone = compared(tmp_path / "alone", [case(BASE[:left])], [case(BASE[:left])])
    assert alone.changes[0].direction == "same"


def test_one_item_of_many_that_moved_is_not_told_as_too_few_items_of_the_headline(tmp_path: Path) -> None:
    far = BASE.copy()
    far[7] += 1000
    lines = comparison_lines(compared(tmp_path, [case(BASE)], [case(far)]))
    assert any("1 headline moved in too few items, or had too few," in line for line in lines)


def test_headlines_that_moved_on_too_few_items_are_counted(tmp_path: Path) -> None:
    few = compared(tmp_path / "1", [case(BASE[:5])], [case(BASE[:5] + 9)])
    assert any("1 headline moved in too few items" in line for line in comparison_lines(few))
    assert "1 headline moved in too few items" in render_comparison(few)
    many = compared(tmp_path / "2", [case(BASE)], [case(BASE + NOISE)])
    assert not any("too few items" in line for line in comparison_lines(many))


def test_a_control_that_was_skipped_is_told(tmp_path: Path) -> None:
    found = compared(tmp_path, [case(BASE), control(True)], [case(BASE), control(None)])
    assert found.remarks == ("1 control of x passed in A and was skipped in B: nothing vouches for these numbers now",)
    assert compared(tmp_path / "2", [case(BASE), control(None)], [case(BASE), control(None)]).remarks == ()


def test_a_model_of_another_name_beside_one_that_stayed_is_told(tmp_path: Path) -> None:
    both = [case(BASE, model="base"), case(BASE, model="v1")], [case(BASE, model="base"), case(BASE + 9, model="v2")]
    found = compared(tmp_path, *both)
    assert any(remark.startswith("cases of v1 are in A alone, the same of v2 in B alone") for remark in found.remarks)
    assert compared(tmp_path / "x", *both, across_models=True).regressions
