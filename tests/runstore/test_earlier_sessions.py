"""What an earlier session, or an earlier attempt of the same one, says of what stands now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.evidence import Control
from lm_audit.findings import Finding, control_finding
from lm_audit.runstore import read_run
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.records import PlannedCase
from lm_audit.runstore.voids import void_audits
from lm_audit.stats.estimate import Estimate
from tests.runstore.sample_ledger import CASE, begin, new_run

FAILED, HELD = Control("positive", False, "a gap", "none"), Control("positive", True, "a gap", "a gap")
OTHER, THIRD = (CASE.replace("-a]", f"-{name}]") for name in "bc")


def shown(
    folder: RunFolder, session: int, control: Control, *findings: Finding, number: int = 1, audit: str | None = "bias"
) -> None:
    """An attempt of a control's case, by a process of its own."""
    ledger = Ledger(folder.ledger, f"main{number}", session=session)
    attempt = begin(folder, ledger, number=number, control="positive", audit=audit)
    attempt.control(control)
    for finding in findings:
        attempt.finding(finding)
    attempt.end("passed" if control.passed else "failed", 1.0)


def measured(folder: RunFolder, session: int, case_id: str = OTHER, model: str = "tiny", **head: str | None) -> None:
    """A case that measures."""
    ledger = Ledger(folder.ledger, f"gw{session}-{case_id[-2]}", session=session)
    attempt = begin(folder, ledger, case_id, number=session + 1, model=model, **head)
    attempt.metric("bias.gap", Estimate(0.5, n=9))
    attempt.end("passed", 1.0)


@pytest.mark.parametrize(("pinned", "model", "cases"), [(False, "tiny", "1 case that has"), (True, None, "2 cases")])
def test_numbers_of_a_session_whose_control_failed_are_void_where_the_control_speaks(
    tmp_path: Path, pinned: bool, model: str | None, cases: str
) -> None:
    """On its own model, or on all where the model is the control's."""
    folder = new_run(tmp_path)
    measured(folder, 1)
    measured(folder, 1, THIRD, model="smollm2")
    shown(folder, 1, FAILED)
    shown(folder, 2, HELD, number=2)
    plan = (PlannedCase(CASE, "bias", "tiny", "cpu", "positive", pinned),)
    [void] = void_audits(replace(read_run(folder.path), plan=plan))
    assert (void.audit, void.model, void.case_id) == ("bias", model, CASE)
    assert void.reason.startswith(f"positive control failed with {cases}")


def test_a_control_that_failed_twice_in_the_session_of_the_numbers_is_told_once(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    measured(folder, 1)
    shown(folder, 1, FAILED)
    shown(folder, 1, HELD, number=2)
    [void] = void_audits(read_run(folder.path))
    assert "not run again since" not in void.reason


@pytest.mark.parametrize(("failed", "numbers", "held"), [(1, 2, 3), (0, 0, 2)], ids=["another-session", "none-told"])
def test_numbers_of_another_session_than_that_in_which_the_control_failed_stand(
    tmp_path: Path, failed: int, numbers: int, held: int
) -> None:
    """Runs of versions that told no session say nothing of what was measured when."""
    folder = new_run(tmp_path)
    measured(folder, numbers)
    shown(folder, failed, FAILED)
    shown(folder, held, HELD, number=2)
    assert void_audits(read_run(folder.path)) == ()


def test_a_control_of_no_audit_voids_none(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    measured(folder, 1, audit=None)
    shown(folder, 1, FAILED, audit=None)
    shown(folder, 2, HELD, number=2, audit=None)
    assert void_audits(read_run(folder.path)) == ()


@pytest.mark.parametrize(("session", "left"), [(1, FAILED), (0, HELD)])
def test_a_control_stays_failed_in_its_session_with_what_it_found(tmp_path: Path, session: int, left: Control) -> None:
    """Whichever attempt of the session it was; where no session is told, the last one stands."""
    folder = new_run(tmp_path)
    for number, control in enumerate((HELD, FAILED, HELD), start=1):
        none = Control("negative", True, "no gap", f"none in attempt {number}")
        shown(folder, session, control, control_finding(control), control_finding(none), number=number)
    [case] = read_run(folder.path).cases
    assert case.last.control == left
    positive, negative = sorted(case.last.findings, key=lambda one: one.key, reverse=True)
    assert positive.held is left.passed
    assert "none in attempt 3" in negative.found, "what did not fail is the last attempt's"


def test_files_that_a_case_read_come_back(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    attempt = begin(folder, Ledger(folder.ledger, "main"))
    attempt.read({"data/a.csv": "ab12"})
    attempt.read({"b.toml": "cd34"})
    attempt.end("passed", 1.0)
    assert read_run(folder.path).cases[0].last.read == {"data/a.csv": "ab12", "b.toml": "cd34"}


def test_a_judgement_of_a_case_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    begin(folder, Ledger(folder.ledger, "main")).end("passed", 1.0)
    told = {"outcome": "failed", "message": "", "cause": "gate", "verdicts": []}
    Ledger(folder.ledger, "controller", session=2).write("judged", case_id=OTHER, attempt=0, **told)
    run = read_run(folder.path)
    assert [case.case_id for case in run.cases] == [CASE]
    [damage] = run.damaged
    assert damage.reason.startswith("judged: ValueError")
