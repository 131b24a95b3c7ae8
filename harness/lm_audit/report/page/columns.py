"""The columns in which a run is shown: its models, and the built-in toy apart from them."""

from __future__ import annotations

from lm_audit.runstore.records import CaseRecord, Run

NO_MODEL = "models named by the cases"
"""The column of cases that no ``--model`` is named for, such as stages of training: something was measured."""
BUILT_IN_TOY = "built-in toy"
"""The column of cases that measure a built-in toy model: what they show says nothing about a model of the user's."""


def column_of(case: CaseRecord) -> str:
    """The column of the matrix that a case stands in."""
    return BUILT_IN_TOY if case.toy else case.model or NO_MODEL


def shared_controls(run: Run) -> frozenset[str]:
    """Controls that chose their model themselves or need none: what they show holds for every model of the run."""
    chosen = {case.case_id for case in run.plan if case.pinned and case.control_role}
    return frozenset(chosen | {case.case_id for case in run.cases if case.is_control and case.model is None})


def model_columns(run: Run) -> list[str]:
    """The columns of a run: its models, then cases without one (controls alone make no column), the toy last."""
    shared = shared_controls(run)
    placed = [case for case in run.cases if case.model or case.toy]  # a toy that its case makes has no model's name
    audited = dict.fromkeys(column_of(case) for case in placed if case.case_id not in shared)
    # A model that serves for controls only is not what the run asks about, unless there is no other.
    names = audited or dict.fromkeys(column_of(case) for case in placed)
    lone = [case for case in run.cases if case.model is None and not case.toy]
    without = [NO_MODEL] if any(not case.is_control for case in lone) or (lone and not names) else []
    return sorted([*names, *without], key=lambda name: name == BUILT_IN_TOY)
