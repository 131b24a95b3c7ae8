"""Folds ledger lines into cases: the last attempt stands, the earlier ones are kept as history.

Each writer has a file of its own and appends; nobody ever changes a line, since a process may die at any byte. What
holds is found here, from all lines of all files: a case that ran twice, one whose worker died and whose end the
controller wrote, one that a resumed run judged anew. Reading the same files gives the same cases, whatever the order in
which they are opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from lm_audit.evidence import Control, Figure
from lm_audit.findings.record import Finding
from lm_audit.runstore.reader import Line
from lm_audit.runstore.records import Artifact, Attempt, CaseRecord, DamagedLine, Outcome, Verdict
from lm_audit.runstore.soundness.shapes import check_shape
from lm_audit.sources.record import MetricSource
from lm_audit.stats.estimate import Estimate

_OF_THE_LEDGER = frozenset({"v", "t", "s", "m", "c", "kind", "case_id", "attempt"})
"""Fields that say where a record stands, not what it tells: times are no part of what is known of a model."""


@dataclass
class _Open:
    """An attempt while its lines are read."""

    worker: str
    started: float
    number: int = 0
    """The writer's own count, 0 where no writer began it."""
    order: tuple[int, float] = (0, 0.0)
    session: int = 0
    file: str = ""
    lines: tuple[int, int] = (0, 0)
    taken: int = 0
    damaged: bool = False
    head: Mapping[str, Any] = field(default_factory=dict)
    end: Mapping[str, Any] | None = None
    metrics: dict[str, Estimate] = field(default_factory=dict)
    sources: dict[str, MetricSource] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    control: Control | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    headline: str | None = None
    row_files: dict[str, int] = field(default_factory=dict)
    row_digests: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)

    @property
    def incomplete(self) -> bool:
        """Whether records are missing: by the count in the end, in older ledgers by damage among the lines."""
        return self.damaged if self.counted is None else self.taken != self.counted

    @property
    def counted(self) -> int | None:
        """How many records its writer had written before the end, None where that is not said."""
        counted = (self.end or {}).get("records")
        return None if counted is None else int(counted)

    def attempt(self, number: int) -> Attempt:
        """The attempt as a record; without an end it is unfinished."""
        end = self.end or {}
        return Attempt(
            number=number,
            outcome=cast(Outcome, end.get("outcome", "unfinished")),
            worker=self.worker,
            duration_s=end.get("duration_s"),
            message=str(end.get("message", "")),
            metrics=dict(self.metrics),
            figures=tuple(self.figures.values()),
            findings=tuple(self.findings.values()),
            artifacts=tuple(self.artifacts),
            control=self.control,
            parameters=dict(self.parameters),
            notes=tuple(self.notes),
            headline=self.headline,
            row_files=tuple(self.row_files),
            n_rows=sum(self.row_files.values()),
            row_digests=dict(self.row_digests),
            cause=end.get("cause"),
            started=self.started,
            sources=dict(self.sources),
            code_version=self.head.get("code_version"),
            session=self.session,
            read=dict(self.read),
            incomplete=self.incomplete,
        )


_Attempts = dict[str, dict[tuple[str, int], _Open]]
"""By case, then by file and number: a run of many thousand cases has as many lines that ask for those of one case."""


def fold(
    lines: Iterable[Line], unreadable: Iterable[DamagedLine] = ()
) -> tuple[tuple[CaseRecord, ...], list[DamagedLine]]:
    """The cases in order of their first start, and the lines whose content could not be used.

    An attempt that lost records, by its own count or because an ``unreadable`` line lies among its own, is incomplete.
    """
    attempts: _Attempts = {}
    damaged: list[DamagedLine] = []
    ordered = sorted(lines, key=lambda line: line.order)
    for line in ordered:
        try:
            check_shape(line.kind, line.record)
            if "case_id" in line.record:
                _take(line, attempts)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            damaged.append(DamagedLine(line.file, line.number, f"{line.kind}: {type(error).__name__}: {error}"))
    every = [(case_id, one) for case_id, own in attempts.items() for one in own.values()]
    _mark_damaged((one for _, one in every), [*unreadable, *damaged])
    damaged += [lost for case_id, one in every if (lost := _lost(case_id, one)) is not None]
    return tuple(_case(case_id, sorted(own.values(), key=_by_order)) for case_id, own in attempts.items()), damaged


def _by_order(attempt: _Open) -> tuple[int, float]:
    return attempt.order


def _mark_damaged(attempts: Iterable[_Open], damaged: Iterable[DamagedLine]) -> None:
    places: dict[str, list[int]] = {}
    for line in damaged:
        places.setdefault(line.file, []).append(line.line)
    for attempt in attempts if places else ():
        first, last = attempt.lines
        attempt.damaged |= any(first < number < last for number in places.get(attempt.file, ()))


def _lost(case_id: str, attempt: _Open) -> DamagedLine | None:
    """Records of an ended attempt that are gone as if they had never been: no damaged line among its own tells it."""
    if attempt.damaged or not attempt.incomplete:
        return None
    told = f"{case_id}: {attempt.taken} of the {attempt.counted} records before its end are there"
    return DamagedLine(attempt.file, attempt.lines[1], told)


def _take(line: Line, attempts: _Attempts) -> None:
    record = line.record
    case_id = str(record["case_id"])
    if line.kind == "case_end" and record.get("by") == "controller":
        _end_of_dead(line, case_id, attempts)
        return
    if line.kind == "judged":
        _judged(record, attempts.get(case_id, {}).values())
        return
    # Attempts are counted by each writer for itself: two workers may both have made a first one.
    number = int(record["attempt"])
    found = attempts.get(case_id, {}).get((line.file, number))
    if found is None:
        found = attempts.setdefault(case_id, {})[line.file, number] = _Open(
            line.worker, line.time, number, line.order, line.session, line.file, (line.number, line.number)
        )
    found.lines = (min(found.lines[0], line.number), max(found.lines[1], line.number))
    _TAKERS[line.kind](found, record)
    found.taken += line.kind != "case_end"  # The end says how many came before it.


def _end_of_dead(line: Line, case_id: str, attempts: _Attempts) -> None:
    """Give the controller's end to the attempt that the dead worker left open, or make one that never began.

    A worker that died after it had written the end of the case, and before it could report it, has finished the case.
    """
    worker = str(line.record.get("worker", ""))
    # Writers are called WORKER-PID; the controller knows the worker alone, whose successor may bear its name.
    of_case = attempts.get(case_id, {}).values()
    own = [attempt for attempt in of_case if attempt.worker.rpartition("-")[0] == worker]
    left_open = [attempt for attempt in own if attempt.end is None]
    if not left_open and line.session and any(attempt.session == line.session for attempt in own):
        return
    if not left_open:
        made = _Open(worker, line.time, order=line.order)
        left_open = [attempts.setdefault(case_id, {}).setdefault((line.file, -line.number), made)]
    left_open[-1].end = line.record


def _judged(record: Mapping[str, Any], attempts: Iterable[_Open]) -> None:
    """A resumed run held the last attempt against its own gates."""
    last = max(attempts, key=_by_order)
    kept = {name: record.get(name) for name in ("outcome", "message", "cause")}
    last.end = {**(last.end or {}), **kept}
    last.verdicts.clear()
    for verdict in record["verdicts"]:
        _verdict(last, verdict)


def _start(found: _Open, record: Mapping[str, object]) -> None:
    if found.head:
        raise ValueError("the attempt began before")
    found.head = record


def _end(found: _Open, record: Mapping[str, object]) -> None:
    # A worker that was taken for dead may still tell how its case ended.
    if found.end is not None and found.end.get("by") != "controller":
        raise ValueError(f"the attempt ended before, {found.end['outcome']}")
    found.end = record


def _model(found: _Open, record: Mapping[str, object]) -> None:
    found.model.update({name: value for name, value in record.items() if name not in _OF_THE_LEDGER})


def _metric(found: _Open, record: Mapping[str, Any]) -> None:
    name = str(record["name"])
    found.metrics[name] = Estimate.from_json(record["estimate"])
    if record.get("source") is not None:
        found.sources[name] = MetricSource.from_json(record["source"])


def _rows(found: _Open, record: Mapping[str, Any]) -> None:
    name = str(record["file"])
    found.row_files[name] = found.row_files.get(name, 0) + int(record["n"])
    if "sha256" in record:
        found.row_digests[name] = str(record["sha256"])


def _figure(found: _Open, record: Mapping[str, Any]) -> None:
    name = str(record["name"])
    found.figures[name] = Figure(
        name, str(record["title"]), record["figure"], record["data"], record.get("caption", "")
    )


def _artifact(found: _Open, record: Mapping[str, object]) -> None:
    found.artifacts.append(Artifact(str(record["path"]), str(record["sha256"])))


def _control(found: _Open, record: Mapping[str, Any]) -> None:
    control = Control(record["role"], bool(record["passed"]), str(record["expected"]), str(record["observed"]))
    # A case may check several things; one that failed must not be hidden by a later one that passed.
    if found.control is None or found.control.passed:
        found.control = control


def _parameter(found: _Open, record: Mapping[str, object]) -> None:
    found.parameters[str(record["name"])] = record["value"]


def _note(found: _Open, record: Mapping[str, object]) -> None:
    found.notes.append(str(record["text"]))


def _read(found: _Open, record: Mapping[str, Any]) -> None:
    found.read.update({str(name): str(digest) for name, digest in record["files"].items()})


def _headline(found: _Open, record: Mapping[str, object]) -> None:
    found.headline = str(record["metric"])


def _finding(found: _Open, record: Mapping[str, Any]) -> None:
    finding = Finding.from_json(record["finding"])
    known = found.findings.get(finding.key)
    # As with controls: one that failed stays.
    if known is None or known.held is not False:
        found.findings[finding.key] = finding


def _verdict(found: _Open, record: Mapping[str, Any]) -> None:
    verdict = Verdict(str(record["metric"]), record["word"], str(record["limit"]), str(record["reason"]))
    found.verdicts[f"{verdict.metric} {verdict.limit}"] = verdict


_TAKERS = {
    "case_start": _start,
    "model": _model,
    "metric": _metric,
    "rows": _rows,
    "figure": _figure,
    "artifact": _artifact,
    "control": _control,
    "parameter": _parameter,
    "note": _note,
    "read": _read,
    "headline": _headline,
    "finding": _finding,
    "verdict": _verdict,
    "case_end": _end,
}


def _keep_failed(found: list[_Open]) -> None:
    """A control that failed stays failed where the same session ran it again (a plugin that repeats what fails)."""
    last = found[-1]
    for attempt in found[:-1] if last.session else ():
        if attempt.session == last.session and attempt.control is not None and not attempt.control.passed:
            last.control = attempt.control
            last.findings.update({key: one for key, one in attempt.findings.items() if one.held is False})
            return


def _case(case_id: str, found: list[_Open]) -> CaseRecord:
    _keep_failed(found)
    numbered: list[Attempt] = []
    for attempt in found:  # Of an attempt of which nothing can be read a later one's own number tells.
        numbered.append(attempt.attempt(max(attempt.number, numbered[-1].number + 1 if numbered else 1)))
    last = found[-1]
    # A crash before its case start was written leaves no head: what earlier attempts said of the case still holds.
    head = next((attempt.head for attempt in reversed(found) if attempt.head), {})
    record = CaseRecord(
        case_id=case_id,
        audit=head.get("audit"),
        model=head.get("model"),
        device=head.get("device"),
        fingerprint=head.get("fingerprint"),
        last=numbered[-1],
        earlier=tuple(numbered[:-1]),
        verdicts=tuple(last.verdicts.values()),
        toy=bool(head.get("toy", False)),
    )
    return replace(record, control_role=head.get("control"), model_details=dict(last.model), markers=_markers(head))


def _markers(head: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(marker) for marker in head.get("markers", ()))
