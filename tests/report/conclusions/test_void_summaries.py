"""Why an audit is void, in one line: the control that failed first, how many alike, how many more, on which models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.evidence import Control
from lm_audit.report import write_reports
from lm_audit.report.conclusions.answer import overall
from lm_audit.report.conclusions.voids import Voids, _summary
from lm_audit.runstore.records import Attempt, CaseRecord, Run
from lm_audit.runstore.voids import VoidAudit
from lm_audit.stats import Estimate
from tests.report.made_runs import MadeCase, preference, write_run

FAILED = VoidAudit("x", "m", "evals/t.py::a[m@cpu-1]", "positive control failed:  not\nfound")
OTHER = VoidAudit("x", "m", "evals/t.py::a[m@cpu-2]", "negative control failed: found")
BROKE = VoidAudit("x", "m", "evals/t.py::b[m@cpu]", "no memory, so that it did not run to its end")
NEVER = VoidAudit("x", "m", "evals/t.py::c[m@cpu]", "positive control did not run")


@pytest.mark.parametrize(
    ("voids", "summary"),
    [
        ([FAILED], "positive control failed: not found (a[m@cpu-1])"),
        ([FAILED, FAILED], "2 controls: positive control failed: not found"),
        ([FAILED, FAILED, FAILED], "3 controls: positive control failed: not found"),
        ([NEVER, FAILED], "positive control failed: not found (a[m@cpu-1]), and 1 more"),
        ([NEVER, BROKE, FAILED, OTHER], "positive control failed: not found (a[m@cpu-1]), and 3 more"),
        ([FAILED, NEVER, FAILED, OTHER], "2 controls: positive control failed: not found, and 2 more"),
        ([replace(BROKE, reason="no memory"), FAILED], "positive control failed: not found (a[m@cpu-1]), and 1 more"),
        ([NEVER, replace(BROKE, reason="no memory")], "no memory (b[m@cpu]), and 1 more"),
        ([NEVER], "positive control did not run (c[m@cpu])"),
        ([NEVER, NEVER], "2 controls did not run"),
        ([NEVER, replace(NEVER, reason="negative control did not run"), NEVER], "3 controls did not run"),
    ],
)
def test_the_line_names_what_failed_before_what_did_not_run(voids: list[VoidAudit], summary: str) -> None:
    assert _summary(voids) == summary


def run_of(*models: str | None, measured: bool = True) -> Run:
    """Each model has a control that failed; the first audit was measured or not."""
    control = Control("positive", False, "found", "not found")
    cases = [
        CaseRecord(f"t::c[{model}]", "x", model, None, None, Attempt(1, "failed", "main", 1.0, control=control))
        for model in models
    ]
    metrics = {"x.y": Estimate(0.4, 0.3, 0.5, 9)} if measured else {}
    for model in models:
        cases.append(
            CaseRecord(f"t::m[{model}]", "x", model, None, None, Attempt(1, "passed", "main", 1.0, metrics=metrics))
        )
    ids = tuple(case.case_id for case in cases)
    return Run("one", Path("one"), 1, {}, tuple(cases), ids, finished=True)


@pytest.mark.parametrize(("models", "named"), [(("a",), "a"), (("a", "b"), "a, b"), (("a", None), "")])
def test_models_are_named_unless_it_is_void_on_all(models: tuple[str | None, ...], named: str) -> None:
    (found,) = Voids(run_of(*models)).summaries().items()
    assert found[0] == "x" and found[1][0] == named and "failed" in found[1][1]


def test_an_audit_that_measured_nothing_has_no_void_numbers() -> None:
    unmeasured = Voids(run_of("a", measured=False))
    assert unmeasured.summaries() == {} and list(unmeasured.audits()) == ["x"]


@pytest.mark.parametrize(("models", "told"), [(("a",), "x on a"), (("a", "b"), "x on a, b"), (("a", None), "x")])
def test_the_answer_names_the_models_on_which_an_audit_is_void(models: tuple[str | None, ...], told: str) -> None:
    """What was found in another model counts all the same."""
    found, _ = overall(run_of(*models))
    assert f"Void, so that its numbers do not count: {told}." in found.reasons


@pytest.mark.parametrize(("held", "told"), [(False, "Whatever was found is void."), (True, "Nothing found.")])
def test_what_a_failed_control_made_void_is_not_told_as_nothing(tmp_path: Path, held: bool, told: str) -> None:
    share_of = 0.9 if not held else 0.5
    shown = MadeCase("evals/t.py::a[mine@cpu]", "bias", "mine", findings=[preference(share_of, 400)])
    outcome = "passed" if held else "failed"
    control = Control("negative", held, "nothing", "something")
    guard = MadeCase("evals/t.py::b[mine@cpu]", "bias", "mine", outcome=outcome, control=control)
    page = write_reports(write_run(tmp_path / "20260101-120000-aaaa", [shown, guard])).read_text(encoding="utf-8")
    assert f'<p class="muted">{told}</p>' in page
