"""The matrix of audits and models: what each cell says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lm_audit.report.page.leads import leads_of
from lm_audit.report.page.states import State, gate_counts, worst
from lm_audit.report.page.view import CaseView, CellView, FindingView, ModelFindings

LEADS = 3
"""Headline metrics that a cell shows; the rest is one click away."""
TOLD = {"found": "found", "cannot tell": "cannot be told", "not found": "excluded"}


def cell(
    audit: str,
    model: str,
    cases: Sequence[CaseView],
    anchor: str,
    *,
    void: bool,
    elsewhere: Sequence[CaseView] = (),
    findings: ModelFindings | None = None,
) -> CellView:
    """One audit on one model, from its cases on that model and the audit's controls ``elsewhere`` that hold for it."""
    measured = [case for case in cases if case.record.last.control is None]
    controls = [case.record.last.control for case in (*cases, *elsewhere) if case.record.last.control is not None]
    held = sum(control.passed for control in controls)
    leads, weak, remark = leads_of(measured)
    states = [case.state for case in cases]
    told = _own(findings, audit)
    # Where nothing was measured at all there is nothing to be void: what broke it is the news.
    hollow = bool(states) and all(state.name in ("error", "crashed", "skipped", "unfinished") for state in states)
    return CellView(
        audit=audit,
        model=model,
        state=State("void") if void and cases and not hollow else worst(states),
        leads=tuple(leads[:LEADS]),
        more=max(0, len(leads) - LEADS),
        weak=tuple(weak),
        remark=remark,
        findings=_counted(told),
        strongest=told[0] if told and told[0].verdict == "found" else None,
        controls=f"{held} of {len(controls)} controls held" if controls else "no control ran",
        controls_held=held == len(controls) if controls else None,
        cases=case_counts(cases),
        gates=gate_counts((case.record, case.state) for case in cases),
        anchor=anchor,
    )


def _own(findings: ModelFindings | None, audit: str) -> list[FindingView]:
    if findings is None:
        return []
    return [one for one in (*findings.found, *findings.unknown, *findings.absent) if one.audit == audit]


def _counted(told: Sequence[FindingView]) -> str:
    counts = Counter(one.verdict for one in told)
    return ", ".join(f"{counts[word]} {TOLD[word]}" for word in TOLD if counts[word])


def case_counts(cases: Iterable[CaseView]) -> str:
    """``12 cases: 10 passed, 1 failed, 1 skipped``."""
    counts = Counter(case.record.outcome for case in cases)
    total = sum(counts.values())
    parts = ", ".join(f"{counts[word]} {word}" for word in sorted(counts, key=lambda w: (w != "passed", w)))
    if len(counts) == 1:
        return f"{total} {next(iter(counts))}"
    return f"{total} cases: {parts}" if total else "no cases"


def model_state(cells: Sequence[CellView]) -> State:
    """The state of a model over all its audits."""
    return worst(cell.state for cell in cells)
