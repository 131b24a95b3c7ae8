"""Two models of one run, compared pairwise as two runs are: the first one against each of the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lm_audit.report.comparison.runs import MetricChange, RunComparison, compare_runs
from lm_audit.runstore.records import CaseRecord, Run


def audited_models(run: Run) -> list[str]:
    """The models that the run asks about, in order; those of controls that chose their model, and toys, are none."""
    pinned = {case.case_id for case in run.plan if case.pinned}
    models = (case.model for case in run.cases if case.model and case.case_id not in pinned and not case.toy)
    return list(dict.fromkeys(models))


def compared_models(run: Run, *, seed: int = 0) -> list[RunComparison]:
    """The comparison of the first model with each of the others; ``a`` and ``b`` are their names. Cases of no model,
    and those that chose their model themselves, are the same for both and left out.
    """
    first, *others = audited_models(run) or [""]
    return [
        compare_runs(_of_model(run, first), _of_model(run, other), across_models=True, seed=seed) for other in others
    ]


def told_comparisons(comparisons: Iterable[RunComparison]) -> list[dict[str, Any]]:
    """What ``summary.json`` holds of them: every headline, other metrics that changed, and all findings."""
    return [
        {
            "a": comparison.a,
            "b": comparison.b,
            "changes": [_told(c) for c in comparison.changes if c.decided or _telling(c)],
            "findings": [change.to_json() for change in comparison.findings],
            "lost": [{"audit": lost.audit, "reasons": list(lost.reasons)} for lost in comparison.lost],
            "unmeasured": [
                {"case_id": one.case_id, "state": one.state.name, "lacks": one.lacks, "reason": one.reason}
                for one in comparison.unmeasured
            ],
            "remarks": list(comparison.remarks),
        }
        for comparison in comparisons
    ]


def _telling(change: MetricChange) -> bool:
    return not change.void and (change.significant or change.direction == "reversed")


def _of_model(run: Run, model: str) -> Run:
    """The run as if it had audited this model only; controls stay, since they say whether an audit is void."""

    pinned = {case.case_id for case in run.plan if case.pinned}

    def kept(case: CaseRecord) -> bool:
        return case.model == model or (case.is_control and (case.model is None or case.case_id in pinned))

    cases = tuple(case for case in run.cases if kept(case))
    here = {case.case_id for case in cases}
    left_out = {case.case_id for case in run.cases} - here
    plan = tuple(
        case
        for case in run.plan
        if case.case_id in here
        or (case.case_id not in left_out and (case.model == model or (case.control_role and case.pinned)))
    )
    return replace(run, run_id=model, cases=cases, plan=plan, planned=tuple(case.case_id for case in plan))


def _told(change: MetricChange) -> dict[str, Any]:
    return {
        "audit": change.audit,
        "metric": change.metric,
        "case_id": change.case_id,
        "case_id_b": change.case_id_b,
        "a": change.a.to_json(),
        "b": change.b.to_json(),
        "difference": change.difference.to_json(),
        "p": change.p,
        "adjusted": change.adjusted,
        "direction": "void" if change.void else change.direction,
        "decided": change.decided,
        "basis": change.basis,
        "pairs": change.pairs,
    }
