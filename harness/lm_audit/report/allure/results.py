"""Allure results completed from the ledger: what allure-pytest wrote for each case gains all that was measured.

allure-pytest knows a test's outcome and nothing else, and loses a case whose worker died. After the run its results
are matched with the ledger by case id: they gain labels, parameters, steps and attachments, a history id that stays the
same from run to run, and a result of their own for cases that have none.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeGuard

from lm_audit.report.allure.attachments import attachments
from lm_audit.report.allure.whole_run import write_categories, write_environment
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.columns import NO_MODEL
from lm_audit.report.page.states import State, case_state, worst_word
from lm_audit.report.wording.names import case_label, visible
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.report.wording.titles import metric_title
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.shared.textfiles import is_file, replacing

STATUS = {
    "passed": "passed", "failed": "failed", "skipped": "skipped",
    "error": "broken", "crashed": "broken", "unfinished": "broken",
}  # fmt: skip
GATE_STATUS = {"met": "passed", "missed": "failed", "undecided": "skipped", None: "passed"}

Result = dict[str, Any]


def complete_results(run: Run, results: Path) -> int:
    """Complete the Allure results in ``results`` with the evidence of ``run``; the number of results written.

    Writes categories.json and environment.properties too. Raises ``OSError`` where the folder cannot be written.
    """
    results.mkdir(parents=True, exist_ok=True)
    known = _existing(results)
    voids = Voids(run)
    written = 0
    for case in run.cases:
        attempts = sorted(known.get(visible(case.case_id), []), key=lambda found: _stop(found[1]))
        path, result = attempts[-1] if attempts else _made(case, results)
        for earlier_path, earlier in attempts[:-1]:
            _write(earlier_path, earlier | _identity(case))
        state = case_state(case, void=case in voids)
        reasons = voids.reasons(case.audit, case.model) if state.name == "void" else ()
        _write(path, _completed(run, case, result, results, state, reasons))
        written += 1
    write_categories(results)
    write_environment(run, results)
    return written


def _existing(results: Path) -> dict[str, list[tuple[Path, Result]]]:
    found: dict[str, list[tuple[Path, Result]]] = {}
    for path in sorted(results.glob("*-result.json")):
        try:
            result = json.loads(path.read_bytes()) if is_file(path) else None  # a pipe would wait for its writer
        except (OSError, ValueError, RecursionError):
            continue
        if _is_sound(result):
            found.setdefault(visible(_case_id(result)), []).append((path, result))
    return found


def _is_sound(result: object) -> TypeGuard[Result]:
    """Whether what is read and kept of a result has the form that allure-pytest gives it."""
    if not isinstance(result, dict):
        return False
    labels, files, titles = (result.get(name, []) for name in ("labels", "attachments", "titlePath"))
    entries = [*labels, *files] if isinstance(labels, list) and isinstance(files, list) else [None]
    texts = all(isinstance(label, dict) and isinstance(label.get("value", ""), str) for label in entries)
    return texts and isinstance(titles, list) and all(isinstance(result.get(at, 0), int) for at in ("start", "stop"))


def _stop(result: Result) -> int:
    stop = result.get("stop", 0)
    return stop if isinstance(stop, int) else 0


def _case_id(result: Result) -> str:
    """The pytest id of a result, from the path and name that allure-pytest recorded, or from our own label."""
    own = [label.get("value") for label in result.get("labels", ()) if label.get("name") == "case_id"]
    if own:
        return str(own[0])
    titles = [str(title) for title in result.get("titlePath", ())]
    files = next((at for at, title in enumerate(titles) if title.endswith(".py")), len(titles) - 1)
    return "::".join(["/".join(titles[: files + 1]), *titles[files + 1 :], str(result.get("name"))])


def _made(case: CaseRecord, results: Path) -> tuple[Path, Result]:
    """A result for a case that has none: its worker died before allure-pytest could write one."""
    key = str(uuid.UUID(hashlib.md5(case.case_id.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()))
    start = int((case.last.started or 0) * 1000)
    stop = start + int((case.last.duration_s or 0) * 1000)
    result = {"uuid": key, "start": start, "stop": stop, "stage": "finished", "titlePath": _titles(case)}
    return results / f"{key}-result.json", result


def _completed(run: Run, case: CaseRecord, result: Result, results: Path, state: State, void: Iterable[str]) -> Result:
    done = result | _identity(case)
    done["status"] = STATUS[case.outcome]
    if case.last.message:
        done["statusDetails"] = {"message": visible(case.last.message)[:20_000]}
    done["labels"] = _labels(case, state, result.get("labels", ()))
    done["parameters"] = _parameters(case)
    done["description"] = _description(case, state, void)
    done["steps"] = _steps(case, done)
    files = attachments(run, case, results)
    done["attachments"] = [*files, *(a for a in result.get("attachments", ()) if a not in files)]
    return done


def _identity(case: CaseRecord) -> Result:
    """Ids that depend on the case id alone, so that history follows a case through runs, machines and schedulers."""
    digest = hashlib.md5(case.case_id.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    name = visible(case.case_id.rpartition("::")[2])
    return {"name": name, "fullName": visible(case.case_id), "historyId": digest, "testCaseId": digest}


def _titles(case: CaseRecord) -> list[str]:
    file, *classes = case.case_id.split("::")[:-1] or [case.case_id]
    return [*file.split("/"), *classes]


def _labels(case: CaseRecord, state: State, given: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    audit, model, device = case.audit or "other", case.model or NO_MODEL, case.device or "no device"
    test = visible(case_label(case)).partition(" \u203a ")[0]
    pairs = [
        ("parentSuite", audit), ("suite", f"{model} on {device}"), ("subSuite", test),
        ("epic", audit), ("feature", model), ("audit", audit), ("model", model), ("device", device),
        ("verdict", state.label), ("case_id", case.case_id), *(("tag", marker) for marker in case.markers),
    ]  # fmt: skip
    if case.control_role or case.last.control:
        pairs.append(("tag", "control"))
    replaced = {name for name, _ in pairs if name != "tag"} | {"host", "thread"}
    kept = [label for label in given if label.get("name") not in replaced]
    made = [{"name": name, "value": visible(value)} for name, value in pairs]
    return [*made, *(label for label in kept if label not in made)]


def _parameters(case: CaseRecord) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"name": name, "value": visible(value)}
        for name, value in (("model", case.model), ("device", case.device))
        if value
    ]
    for name, value in case.last.parameters.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        made.append({"name": visible(name), "value": visible(text)[:500], "excluded": True})
    if case.fingerprint:
        made.append({"name": "fingerprint", "value": case.fingerprint, "excluded": True})
    return made


def _description(case: CaseRecord, state: State, void: Iterable[str]) -> str:
    lines = [f"**{state.label}**: {state.meaning}", *(f"Void: {visible(reason)}" for reason in void)]
    lines += [visible(f"{finding.verdict}: {finding.statement}") for finding in case.last.findings]
    lines += [visible(note) for note in case.last.notes]
    return "\n\n".join(lines)


def _steps(case: CaseRecord, result: Result) -> list[Result]:
    """One step for each metric, with its gates inside, and one for the control."""
    span = {"start": result.get("start", 0), "stop": result.get("stop", 0), "stage": "finished"}
    steps = []
    for name, estimate in case.last.metrics.items():
        verdicts = [verdict for verdict in case.verdicts if verdict.metric == name]
        title = f"{metric_title(name, case.audit)} = {value_text(estimate)} {interval_text(estimate)}".rstrip()
        inner = [
            {"name": visible(f"{v.word}: {v.limit}, {v.reason}"), "status": GATE_STATUS[v.word], **span}
            for v in verdicts
        ]
        steps.append({"name": visible(title), "status": GATE_STATUS[worst_word(verdicts)], "steps": inner, **span})
    if control := case.last.control:
        title = f"{control.role} control: expected {control.expected}, observed {control.observed}"
        steps.append({"name": visible(title), "status": "passed" if control.passed else "failed", **span})
    return steps


def _write(path: Path, result: Result) -> None:
    with replacing(path) as draft:  # allure-pytest's own result stays where the disk refuses ours
        draft.write_text(json.dumps(result), encoding="utf-8")
