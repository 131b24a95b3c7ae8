"""Which cases of two runs count, and in what order of things: what mutation testing found no test to notice."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lm_audit.evidence import Control
from lm_audit.report.comparison import runs
from lm_audit.report.comparison.deciding import resolution_of
from lm_audit.report.comparison.metric_change import LEVEL, Comparing
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import RunComparison, Unmeasured, compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.report.page.states import State
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

METRICS = {"x.m": Estimate(0.4, 0.3, 0.5, 50, better="lower")}


def measured(name: str, audit: str = "x", **more: Any) -> MadeCase:
    return MadeCase(f"evals/t_{audit}.py::t[m@cpu-{name}]", audit, "m", **({"metrics": METRICS} | more))


def control(passed: bool = True, audit: str = "x") -> MadeCase:
    found = Control("positive", passed, "found", "found" if passed else "nothing")
    return measured("control", audit, control=found, outcome="passed" if passed else "failed")


def compared(folder: Path, a: list[MadeCase], b: list[MadeCase], **options: Any) -> RunComparison:
    return compare_runs(*(read_run(write_run(folder / n, cases)) for n, cases in (("a", a), ("b", b))), **options)


def test_the_smallest_p_that_matters_is_shared_by_audits_and_the_cases_of_the_largest(tmp_path: Path) -> None:
    cases = [measured(str(k)) for k in range(4)] + [measured("c", "y"), measured("c", "z")]
    assert resolution_of(read_run(write_run(tmp_path, cases)).cases) == LEVEL / (3 * 4)
    assert resolution_of([]) == LEVEL


def test_controls_share_nothing_of_it_and_the_seed_reaches_every_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []

    def comparing(*words: Any, **options: Any) -> Comparing:
        told.append(options)
        return Comparing(*words, **options)

    monkeypatch.setattr(runs, "Comparing", comparing)
    cases = [control(), measured("1"), measured("2"), measured("3")]
    compared(tmp_path, cases, cases, seed=7)
    assert told == [{"resolution": LEVEL / 3, "seed": 7, "redrawn": False}] * 3
    compared(tmp_path, cases, cases)
    assert [options["seed"] for options in told[3:]] == [0] * 3


@pytest.mark.parametrize("side", [0, 1])
def test_findings_are_void_where_either_run_is(side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def noted(matched: Iterable[Any], changes: object) -> list[Any]:
        given.extend(matched)
        return []

    monkeypatch.setattr(runs, "finding_changes", noted)
    both = [[control(k != side), measured("1")] for k in range(2)]
    compared(tmp_path, *both)
    assert [(case.case_id[-2], void) for case, _, void in given if not case.control_role] == [("1", True)]


@pytest.mark.parametrize("units", [("p", None), (None, "p"), ("p", "p")])
def test_a_p_value_in_either_run_is_no_metric(units: tuple[str | None, ...], tmp_path: Path) -> None:
    sides = [[measured("1", metrics={**METRICS, "x.p": Estimate(0.01, n=50, unit=unit)})] for unit in units]
    assert [change.metric for change in compared(tmp_path, *sides).changes] == ["x.m"]


def test_what_broke_is_told_behind_cases_that_had_no_value_before(tmp_path: Path) -> None:
    none = measured("0", metrics={})
    broken = measured("1", metrics={}, outcome="failed", message="boom", cause="exception")
    found = compared(tmp_path, [control(), none, measured("1")], [control(), none, broken])
    assert [one.case_id for one in found.unmeasured] == [broken.case_id]


def test_a_case_that_never_ended_is_unfinished(tmp_path: Path) -> None:
    before = read_run(write_run(tmp_path / "a", [measured("1"), measured("2")]))
    after = read_run(write_run(tmp_path / "b", [measured("2")], planned=[measured("1").case_id], finished=False))
    assert compare_runs(before, after).unmeasured == (Unmeasured(measured("1").case_id, State("unfinished")),)


def test_each_audit_that_became_void_is_told_once(tmp_path: Path) -> None:
    cases = [measured(name, audit) for audit in ("x", "y") for name in "12"]
    passed, failed = ([control(ok, audit) for audit in ("x", "y")] for ok in (True, False))
    found = compared(tmp_path, [*passed, *cases], [*failed, *cases])
    assert [(one.audit, one.model) for one in found.lost] == [("x", "m"), ("y", "m")]


def test_a_case_that_broke_keeps_its_state_where_its_audit_is_void_too(tmp_path: Path) -> None:
    broken = measured("1", metrics={}, outcome="failed", message="no value")
    found = compared(tmp_path, [control(), measured("1")], [control(False), broken])
    assert found.unmeasured == (Unmeasured(broken.case_id, State("failed")),)


@pytest.mark.parametrize("left", [{}, {"x.other": METRICS["x.m"]}])
def test_a_case_that_no_longer_records_what_decided_it_is_told_and_fails(
    left: dict[str, Estimate], tmp_path: Path
) -> None:
    both = {"x.other": METRICS["x.m"], **METRICS}
    before = [measured("1", metrics=both, headline="x.m"), measured("2")]
    found = compared(tmp_path, before, [measured("1", metrics=left), measured("2")])
    assert [(one.case_id, one.lacks) for one in found.unmeasured] == [(before[0].case_id, "x.m")] and found.failed
    text = "\n".join(comparison_lines(found))
    assert "x.m: not recorded" in text and "1 case without the metric that decided before" in text
    assert "Worse: 1 case without the metric that decided before." in render_comparison(found)


def test_a_headline_of_either_run_decides(tmp_path: Path) -> None:
    sides = [[measured("1", metrics={**METRICS, "x.k": METRICS["x.m"]}, headline=name)] for name in ("x.m", "x.k")]
    assert all(change.decided for change in compared(tmp_path, *sides).changes)


def test_rows_that_were_lost_are_told_and_not_taken_for_items_of_one_run(tmp_path: Path) -> None:
    rows = [{"item": f"i{k}", "hit": k % 2} for k in range(50)]
    source = {"x.m": MetricSource.mean("hit")}
    runs = [read_run(write_run(tmp_path / name, [measured("1", rows=rows, sources=source)])) for name in "ab"]
    (file,) = (tmp_path / "b" / "rows").rglob("*.jsonl")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:20]))
    found = compare_runs(*runs)
    assert [(change.basis, change.only_a) for change in found.changes] == [("intervals", 0)]
    assert any("30 of 50 rows are not there" in remark for remark in found.remarks)
    file.write_text("{\n" * 3 + file.read_text())
    damage = [remark for remark in compare_runs(*runs).remarks if "so intervals are compared" in remark]
    assert len(damage) == 1 and damage[0].startswith("rows of b are damaged")


def test_a_damaged_run_is_told(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, [measured("1")]) for name in "ab"]
    (folders[1] / "run.json").write_text("{")
    assert any("b is damaged in 1 place: run.json" in one for one in compare_runs(*map(read_run, folders)).remarks)


def test_a_run_of_which_nothing_can_be_read_is_no_baseline_that_was_kept(tmp_path: Path) -> None:
    """What it had measured is unknown; a run without a damage that measured nothing is one."""
    folders = [write_run(tmp_path / name, [measured("1")]) for name in "ab"]
    for ledger in (folders[0] / "ledger").iterdir():
        ledger.write_bytes(b"\0" * 99)
    found = compare_runs(*map(read_run, folders))
    assert found.incomparable and found.failed and any("a is damaged" in one for one in found.remarks)
    nothing = write_run(tmp_path / "c", [])
    assert not compare_runs(read_run(nothing), read_run(folders[1])).failed


GONE = Estimate.not_estimable("3 answers, 8 are needed", n=3)


@pytest.mark.parametrize(
    ("before", "after"),
    [(GONE, GONE), (Estimate(0.01, n=50, unit="p"), GONE), (Estimate(0.01, n=50, unit="p"), None)],
)
def test_what_had_no_value_and_what_is_a_p_value_decided_nothing(
    before: Estimate, after: Estimate | None, tmp_path: Path
) -> None:
    now = METRICS if after is None else {**METRICS, "x.h": after}
    sides = [measured("1", metrics={**METRICS, "x.h": before}, headline="x.h"), measured("1", metrics=now)]
    assert compared(tmp_path, sides[:1], sides[1:]).unmeasured == ()


def test_a_case_that_was_skipped_without_a_reason_is_told_all_the_same(tmp_path: Path) -> None:
    skipped = measured("1", metrics={}, outcome="skipped", message=" ")
    assert compared(tmp_path, [measured("1")], [skipped]).lost[0].reasons == ("1 case: no reason given",)
