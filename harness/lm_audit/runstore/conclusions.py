"""Corrects the findings of a run for their number: the one place where that is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lm_audit.findings.family import Placed, corrected
from lm_audit.runstore.records import CaseRecord


def with_corrected_findings(cases: Iterable[CaseRecord]) -> tuple[CaseRecord, ...]:
    """The cases with the findings of each audit on each model corrected together; what a control claims is left out.

    What a control measures was planted: it concludes on the audit, not on the model.
    """
    known = [_of_control(case) if case.is_control else case for case in cases]
    families: dict[tuple[str | None, str | None], list[int]] = {}
    for at, case in enumerate(known):
        if case.last.findings:
            families.setdefault((case.audit, case.model), []).append(at)
    for places in families.values():
        family: list[Placed] = [(at, finding) for at in places for finding in known[at].last.findings]
        answers = iter(corrected(family))
        for at in places:
            case = known[at]
            own = tuple(next(answers) for _ in case.last.findings)
            known[at] = replace(case, last=replace(case.last, findings=own))
    return tuple(known)


def _of_control(case: CaseRecord) -> CaseRecord:
    own = tuple(finding for finding in case.last.findings if finding.kind == "control")
    return replace(case, last=replace(case.last, findings=own))
