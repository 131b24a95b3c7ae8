"""The findings of a run as plain JSON, in order of weight: what is found first, then what cannot be told."""

from __future__ import annotations

from typing import Any

from lm_audit.findings.record import Finding
from lm_audit.report.conclusions.voids import Voids
from lm_audit.runstore.records import CaseRecord, Run

ORDER = ("found", "cannot tell", "not found")


def ranked_findings(run: Run) -> list[tuple[CaseRecord, Finding]]:
    """Every finding with its case: claims before controls, by verdict, then by p-value; headline findings first."""
    found = [(case, finding) for case in run.cases for finding in case.last.findings]
    return sorted(found, key=lambda entry: _weight(entry[1]))


def told_findings(run: Run) -> list[dict[str, Any]]:
    """Each finding's own fields with its audit, model, case, and whether the audit is void or the model a toy."""
    voids = Voids(run)
    return [
        {
            "audit": case.audit,
            "model": case.model,
            "case_id": case.case_id,
            "void": case in voids,
            "toy": case.toy,
            **finding.to_json(),
        }
        for case, finding in ranked_findings(run)
    ]


def _weight(finding: Finding) -> tuple[bool, bool, int, float]:
    p = finding.p if finding.adjusted is None else finding.adjusted
    return (
        finding.kind == "control",
        not finding.headline,
        ORDER.index(finding.verdict),
        2.0 if p is None else p,
    )
