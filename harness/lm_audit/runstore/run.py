"""Reads a whole run from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lm_audit.runstore.conclusions import with_corrected_findings
from lm_audit.runstore.fold import fold
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import Line, read_lines
from lm_audit.runstore.records import SCHEMA_VERSION, DamagedLine, PlannedCase, Run
from lm_audit.runstore.run_record import RunRecord, read_record
from lm_audit.runstore.soundness.belonging import lost_ledgers, own_lines, runs_of
from lm_audit.shared.visible import shown as visible_in
from lm_audit.shared.visible import visible


def read_run(folder: str | Path, *, shown: bool = False) -> Run:
    """The run in ``folder``, folded from its ledgers; damaged lines are left out and listed in ``damaged``.

    With ``shown`` all text in it is visible (:mod:`lm_audit.shared.visible`), as whatever draws, writes or prints it
    needs it; the paths of its files and the folder stay as they are. ``StoreError`` where the folder holds no ledger.
    """
    where = RunFolder(Path(folder).resolve())
    found, damaged = read_lines(where, shown=shown)
    record = read_record(where)
    metadata, bad_metadata = record.content, _of_record(record, found)
    lines, foreign = own_lines(found, frozenset() if bad_metadata else runs_of(metadata))
    if any(one.file == where.run_json.name for one in foreign):
        metadata = {}
    damaged += foreign
    named = {one.file for one in damaged}
    damaged += [one for one in lost_ledgers(where, lines) if one.file not in named]
    cases, unusable = fold(lines, damaged)
    plan, bad_plan = _plan(lines)
    # As they were planned, not as they began: who works beside whom must not change a report.
    place = {case.case_id: number for number, case in enumerate(plan)}
    in_order = sorted(cases, key=lambda case: place.get(case.case_id, len(place)))
    known = (*damaged, *unusable, *bad_plan, *bad_metadata)
    if not known and metadata.get("finished") and not any(line.kind == "run_end" for line in lines):
        what = "end of the run" if lines else "record"
        known = (DamagedLine("ledger", 0, f"holds no {what}, though run.json says that it ended"),)
    return Run(
        run_id=visible(where.run_id) if shown else where.run_id,
        folder=where.path,
        schema_version=max((int(line.record["v"]) for line in lines), default=SCHEMA_VERSION),
        metadata=visible_in(metadata) if shown else metadata,
        cases=with_corrected_findings(in_order),
        planned=tuple(case.case_id for case in plan),
        damaged=tuple(map(visible_in, known)) if shown else known,
        finished=_finished(lines),
        plan=plan,
        sessions=max((line.session for line in lines), default=0),
        seconds=None if "merged_from" in metadata else _seconds(lines),
    )


def _seconds(lines: Sequence[Line]) -> float | None:
    """What lies between the first and the last record of each session of a process that measured, added up."""
    begun = _measured(lines)
    moments: dict[int, list[float]] = {}
    for line in lines:
        if line.session in begun and "m" in line.record:
            moments.setdefault(line.session, []).append(line.order[1])
    return sum(max(of_one) - min(of_one) for of_one in moments.values()) if moments else None


def _measured(lines: Sequence[Line]) -> set[int]:
    """The sessions of processes that measured."""
    return {line.session for line in lines if line.kind == "run_start" and {"m", "pid"} <= line.record.keys()}


def _of_record(record: RunRecord, lines: Sequence[Line]) -> list[DamagedLine]:
    if record.is_there:
        return [DamagedLine("run.json", 1, fault) for fault in record.faults]
    # A process that measured has written it before its ledger; the lines of other makers stand for themselves.
    missing = DamagedLine("run.json", 0, "is not there: with which options and versions the run began is unknown")
    return [missing] if _measured(lines) else []


def _plan(lines: Iterable[Line]) -> tuple[tuple[PlannedCase, ...], list[DamagedLine]]:
    """Every case that was ever selected: workers write the same plan, a resumed run adds to it."""
    planned: dict[str, PlannedCase] = {}
    damaged: list[DamagedLine] = []
    for line in lines:
        if line.kind != "plan":
            continue
        try:
            for entry in line.record.get("cases", ()):
                case = PlannedCase.from_json(entry)
                planned.setdefault(case.case_id, case)
        except (TypeError, ValueError, AttributeError) as error:
            damaged.append(DamagedLine(line.file, line.number, f"plan: {error}"))
    return tuple(planned.values()), damaged


def _finished(lines: Iterable[Line]) -> bool:
    """Whether the latest session of the run came to its end."""
    marks = sorted((line for line in lines if line.kind in ("run_start", "run_end")), key=lambda line: line.order)
    return bool(marks) and marks[-1].kind == "run_end" and not marks[-1].record.get("interrupted", False)
