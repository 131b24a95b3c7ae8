"""Which audits are void, and why."""

from __future__ import annotations

from harness.runstore.records import Run


def void_reasons(run: Run) -> dict[str, tuple[str, ...]]:
    """For each void audit the controls that failed, as sentences."""
    reasons: dict[str, list[str]] = {}
    for case in run.cases:
        control = case.last.control
        if control is not None and not control.passed:
            text = f"{case.case_id}: {control.role} control, expected {control.expected}, observed {control.observed}"
            reasons.setdefault(case.audit or "", []).append(text)
    return {audit: tuple(found) for audit, found in reasons.items()}
