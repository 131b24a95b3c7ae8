"""A control that chose its own model speaks for every model of the run, and gives that model no column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.evidence import Control
from lm_audit.report.page.build import build_page
from lm_audit.report.page.columns import NO_MODEL
from lm_audit.runstore.records import Attempt, CaseRecord, Outcome, PlannedCase, Run
from lm_audit.stats import Estimate


def run_with(folder: Path, *, passed: bool, pinned: bool) -> Run:
    control = Control("positive", passed, "found", "seen")
    outcome: Outcome = "passed" if passed else "failed"
    measured = Attempt(
        1, "passed", "main", 1.0, metrics={"leakage.x": Estimate(0.4, 0.3, 0.5, 9)}, headline="leakage.x"
    )
    shown = Attempt(1, outcome, "main", 1.0, control=control)
    cases = (
        CaseRecord("t::a[big@cpu-plain]", "leakage", "big", "cpu", None, measured),
        CaseRecord("t::b[tiny@cpu-planted]", "leakage", "tiny", "cpu", None, shown),
    )
    plan = tuple(
        PlannedCase(case.case_id, case.audit, case.model, "cpu", "positive" if at else None, bool(at) and pinned)
        for at, case in enumerate(cases)
    )
    return Run("20260101-000000-0000", folder, 1, {}, cases, tuple(p.case_id for p in plan), plan=plan, finished=True)


def test_a_pinned_control_counts_for_the_audited_model(tmp_path: Path) -> None:
    page = build_page(run_with(tmp_path, passed=True, pinned=True))
    assert [model.name for model in page.models] == ["big"]
    (cell,) = page.audits[0].cells
    assert cell.controls == "1 of 1 controls held"


def test_a_failed_pinned_control_voids_the_audited_model(tmp_path: Path) -> None:
    (cell,) = build_page(run_with(tmp_path, passed=False, pinned=True)).audits[0].cells
    assert (cell.model, cell.state.name, cell.controls) == ("big", "void", "0 of 1 controls held")


@pytest.mark.parametrize("passed", [True, False])
def test_a_control_on_an_audited_model_speaks_for_that_model_only(tmp_path: Path, passed: bool) -> None:
    page = build_page(run_with(tmp_path, passed=passed, pinned=False))
    cells = {cell.model: cell for cell in page.audits[0].cells}
    assert cells["big"].controls == "no control ran" and cells["big"].state.name != "void"
    assert cells["tiny"].controls == f"{int(passed)} of 1 controls held"


@pytest.mark.parametrize("passed", [True, False])
def test_a_control_without_a_model_speaks_for_every_model_and_makes_no_column(tmp_path: Path, passed: bool) -> None:
    run = run_with(tmp_path, passed=passed, pinned=False)
    alone = replace(run.cases[1], case_id="t::b[planted]", model=None, device=None)
    page = build_page(replace(run, cases=(run.cases[0], alone), plan=()))
    assert [model.name for model in page.models] == ["big"]
    (cell,) = page.audits[0].cells
    assert cell.controls == f"{int(passed)} of 1 controls held" and (cell.state.name == "void") == (not passed)


def test_a_case_without_a_model_that_is_no_control_has_its_column(tmp_path: Path) -> None:
    run = run_with(tmp_path, passed=True, pinned=True)
    lone = replace(run.cases[0], case_id="t::c[alone]", model=None, device=None)
    assert [model.name for model in build_page(replace(run, cases=(*run.cases, lone))).models] == ["big", NO_MODEL]
    # Stages of training are such cases: an effect found "in no model" would have been found nowhere.
    assert not NO_MODEL.startswith("no ")
    only = replace(run.cases[1], model=None, device=None)
    assert [model.name for model in build_page(replace(run, cases=(only,), plan=())).models] == [NO_MODEL]
