"""JUnit XML from the ledger: unlike what pytest writes itself, it knows metrics, verdicts and crashed cases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import case_state
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import interval_text
from lm_audit.runstore.records import CaseRecord, Run

_TAGS = {"failed": "failure", "error": "error", "crashed": "error", "unfinished": "error", "skipped": "skipped"}


def write_junit(run: Run, path: Path) -> None:
    """Write one suite with a test case for every case of the run, planned cases that never ended included."""
    voids = Voids(run)
    suite = ET.Element("testsuite", {"name": "lm-audit"} | _counts(run))
    for case in run.cases:
        suite.append(_case(case, void=case in voids))
    recorded = {case.case_id for case in run.cases}
    for case_id in run.missing:
        if case_id not in recorded:
            element = ET.SubElement(suite, "testcase", classname=_class(case_id), name=_name(case_id), time="0")
            ET.SubElement(element, "error", message="planned, but never started")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _counts(run: Run) -> dict[str, str]:
    recorded = {case.case_id for case in run.cases}
    lost = sum(case_id not in recorded for case_id in run.missing)
    tags = Counter(_TAGS.get(case.outcome, "passed") for case in run.cases)
    seconds = sum(case.last.duration_s or 0.0 for case in run.cases)
    return {
        "tests": str(len(run.cases) + lost),
        "failures": str(tags["failure"]),
        "errors": str(tags["error"] + lost),
        "skipped": str(tags["skipped"]),
        "time": f"{seconds:.3f}",
    }


def _case(case: CaseRecord, *, void: bool) -> ET.Element:
    seconds = f"{case.last.duration_s or 0.0:.3f}"
    element = ET.Element("testcase", classname=_class(case.case_id), name=_name(case.case_id), time=seconds)
    properties = ET.SubElement(element, "properties")
    for name, value in _properties(case, void=void):
        ET.SubElement(properties, "property", name=visible(name), value=visible(value))
    if tag := _TAGS.get(case.outcome):
        message = visible(case.last.message or case.outcome)
        problem = ET.SubElement(element, tag, message=f"{case.outcome}: {message.splitlines()[0][:300]}")
        problem.text = message
    return element


def _properties(case: CaseRecord, *, void: bool) -> list[tuple[str, str]]:
    known = {"audit": case.audit, "model": case.model, "device": case.device}
    pairs = [(name, value) for name, value in known.items() if value]
    pairs.append(("state", case_state(case, void=void).name))
    for name, estimate in case.last.metrics.items():
        pairs.append((name, "" if estimate.value is None else repr(estimate.value)))
        if interval := interval_text(estimate):
            pairs.append((f"{name}.interval", interval))
    pairs += [(f"finding.{f.key}", f"{f.verdict}: {f.statement}") for f in case.last.findings]
    pairs += [(f"{v.metric}.verdict", f"{v.word} ({v.limit})") for v in case.verdicts]
    return pairs


def _class(case_id: str) -> str:
    return visible(case_id.partition("::")[0].removesuffix(".py").replace("/", "."))


def _name(case_id: str) -> str:
    return visible(case_id.partition("::")[2] or case_id)
