"""Reads a whole run from its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_audit.runstore.conclusions import with_corrected_findings
from lm_audit.runstore.fold import fold
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import Line, read_lines
from lm_audit.runstore.records import SCHEMA_VERSION, DamagedLine, PlannedCase, Run


def read_run(folder: str | Path) -> Run:
    """The run in ``folder``, folded from its ledgers; damaged lines are left out and listed in ``damaged``.

    Raises ``StoreError`` where the folder holds no ledger.
    """
    where = RunFolder(Path(folder).resolve())
    lines, damaged = read_lines(where)
    cases, unusable = fold(lines, damaged)
    metadata, bad_metadata = _metadata(where)
    plan = _plan(lines)
    return Run(
        run_id=where.run_id,
        folder=where.path,
        schema_version=max((int(line.record["v"]) for line in lines), default=SCHEMA_VERSION),
        metadata=metadata,
        cases=with_corrected_findings(cases),
        planned=tuple(case.case_id for case in plan),
        damaged=(*damaged, *unusable, *bad_metadata),
        finished=_finished(lines),
        plan=plan,
        sessions=max((line.session for line in lines), default=0),
    )


def _metadata(where: RunFolder) -> tuple[Mapping[str, Any], list[DamagedLine]]:
    try:
        metadata = json.loads(where.run_json.read_bytes())
        return (metadata, []) if isinstance(metadata, dict) else ({}, [DamagedLine("run.json", 1, "not an object")])
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [DamagedLine("run.json", 1, str(error))]


def _plan(lines: Iterable[Line]) -> tuple[PlannedCase, ...]:
    """Every case that was ever selected: workers write the same plan, a resumed run adds to it."""
    planned: dict[str, PlannedCase] = {}
    for line in lines:
        if line.kind == "plan":
            for entry in line.record.get("cases", ()):
                case = PlannedCase.from_json(entry)
                planned.setdefault(case.case_id, case)
    return tuple(planned.values())


def _finished(lines: Iterable[Line]) -> bool:
    """Whether the latest session of the run came to its end."""
    marks = sorted((line for line in lines if line.kind in ("run_start", "run_end")), key=lambda line: line.order)
    return bool(marks) and marks[-1].kind == "run_end" and not marks[-1].record.get("interrupted", False)
