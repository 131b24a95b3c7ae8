"""Which audits are void: their controls did not show that the audit works, so its numbers say nothing."""

from __future__ import annotations

from dataclasses import dataclass

from lm_audit.runstore.records import CaseRecord, PlannedCase, Run


@dataclass(frozen=True)
class VoidAudit:
    """An audit whose numbers are void on ``model`` (on every model if None), and the control that says so."""

    audit: str
    model: str | None
    case_id: str
    reason: str


def void_audits(run: Run) -> tuple[VoidAudit, ...]:
    """One entry for every control that failed, could not run to its end, or was selected and never ended.

    A control that was skipped, or not selected, voids nothing: it says no more than that nobody looked. Two models
    under one name (another node's weights, a folder that changed while the run was killed) void what was measured on
    either. What was measured in a session in which the control failed stays void though a later session (with other
    code) ran the control alone and it passed.
    """
    records = {case.case_id: case for case in run.cases}
    plan = {case.case_id: case for case in run.plan}
    found = [_of_record(case, plan.get(case.case_id)) for case in run.cases]
    found += [_of_plan(case) for case in run.plan if case.case_id not in records]
    found += [_of_earlier(case, plan.get(case.case_id), run) for case in run.cases]
    found += _two_under_one_name(run)
    return tuple(entry for entry in found if entry is not None)


def void_reason(run: Run, audit: str | None, model: str | None) -> str | None:
    """Why the numbers of ``audit`` on ``model`` are void, None where they are not."""
    reasons = [v.reason for v in void_audits(run) if v.audit == audit and (v.model is None or v.model == model)]
    return "; ".join(reasons) or None


def _of_record(case: CaseRecord, planned: PlannedCase | None) -> VoidAudit | None:
    attempt = case.last
    control = attempt.control
    if case.audit is None or (control is None and case.control_role is None):
        return None
    role = control.role if control is not None else case.control_role
    if control is not None and not control.passed:
        reason = f"{role} control failed: expected {control.expected}, observed {control.observed}"
    elif attempt.outcome in ("passed", "skipped") or (control is not None and attempt.cause == "gate"):
        # Controls are not held against gates; runs of older versions did, and failed some that showed what they should.
        return None
    else:
        word = "did not end" if attempt.outcome == "unfinished" else attempt.outcome
        reason = f"{role} control {word}" + (f": {attempt.message}" if attempt.message else "")
    pinned = planned is not None and planned.pinned
    return VoidAudit(case.audit, None if pinned else case.model, case.case_id, reason)


def _of_earlier(case: CaseRecord, planned: PlannedCase | None, run: Run) -> VoidAudit | None:
    """A control that failed in an earlier session, of which numbers still stand."""
    failed = {one.session: one.control for one in case.earlier if one.control is not None and not one.control.passed}
    if case.audit is None or not failed:  # Nearly all: what is looked for among all cases would be looked for in each.
        return None
    model = None if planned is not None and planned.pinned else case.model
    left = [
        other
        for other in run.cases
        if other.audit == case.audit and not other.is_control and other.last.metrics
        and (model is None or other.model == model)
        and other.last.session in failed and 0 < other.last.session < case.last.session
    ]  # fmt: skip
    if not left:
        return None
    control = failed[left[0].last.session]
    cases = "1 case that has" if len(left) == 1 else f"{len(left)} cases that have"
    reason = (
        f"{control.role} control failed with {cases} not run again since: expected {control.expected}, "
        f"observed {control.observed}"
    )
    return VoidAudit(case.audit, model, case.case_id, reason)


def _of_plan(case: PlannedCase) -> VoidAudit | None:
    if case.control_role is None or case.audit is None:
        return None
    reason = f"{case.control_role} control did not run"
    return VoidAudit(case.audit, None if case.pinned else case.model, case.case_id, reason)


def _two_under_one_name(run: Run) -> list[VoidAudit]:
    """An entry for each audit of a model name that stands for several models, by their fingerprints."""
    seen: dict[str, dict[str, str]] = {}
    audits: dict[str, set[str]] = {}
    for case in run.cases:
        fingerprint = case.model_details.get("fingerprint")
        if case.model and case.audit and fingerprint:
            seen.setdefault(case.model, {}).setdefault(str(fingerprint), case.case_id)
            audits.setdefault(case.model, set()).add(case.audit)
    return [
        VoidAudit(
            audit,
            model,
            list(prints.values())[1],
            f"{len(prints)} models were measured under the name {model}: fingerprints "
            + ", ".join(sorted(text[:12] for text in prints)),
        )
        for model, prints in seen.items()
        if len(prints) > 1
        for audit in sorted(audits[model])
    ]
