"""Whether what lies beside the ledger, rows and attached files, is what was recorded there: by its SHA-256.

A file that was cut, edited, swapped with another or lost is named; older runs told no digests of rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.runstore.inside import content_inside, file_inside
from lm_audit.runstore.reader import unread
from lm_audit.runstore.records import Attempt, DamagedLine, Run

CUT_SHORT = ("store", "timeout", "budget", "server")
"""Causes of failures that say nothing of the model, and may have come in the middle of its rows."""


def damaged_files(run: Run) -> tuple[DamagedLine, ...]:
    """The files of the cases' last attempts that are not as they were recorded, each with the reason."""
    return tuple(one for case in run.cases for one in damaged_of(run.folder, case.last))


def damaged_of(folder: Path, attempt: Attempt) -> Iterator[DamagedLine]:
    """The same of one attempt."""
    for name in attempt.row_files:
        try:
            reason = other_rows(attempt, name, content_inside(folder, name))
        except (OSError, StoreError) as error:
            reason = unread(error)
        if reason:
            yield DamagedLine(name, 0, reason)
    yield from damaged_artifacts(folder, attempt)


def damaged_artifacts(folder: Path, attempt: Attempt) -> Iterator[DamagedLine]:
    """The attached files of an attempt that are not as they were recorded."""
    for artifact in attempt.artifacts:
        try:
            with file_inside(folder, artifact.path).open("rb") as handle:
                same = hashlib.file_digest(handle, "sha256").hexdigest() == artifact.sha256
        except (OSError, StoreError) as error:
            yield DamagedLine(artifact.path, 0, unread(error))
        else:
            if not same:
                yield DamagedLine(artifact.path, 0, "is not the file that was attached: its SHA-256 differs")


def other_rows(attempt: Attempt, name: str, content: bytes) -> str | None:
    """Why ``content`` is not what the attempt recorded in its rows file ``name``, None where it is.

    Rows that an attempt was still writing when something broke it off may follow those that it recorded.
    """
    stated = attempt.row_digests.get(name)
    if stated is None or hashlib.sha256(content).hexdigest() == stated:
        return None
    broken_off = attempt.outcome not in ("passed", "failed", "skipped") or attempt.cause in CUT_SHORT
    if broken_off and _begins_with(stated, content.splitlines(keepends=True)):
        return None
    return "its rows are not those that were recorded: their SHA-256 differs"


def _begins_with(stated: str, lines: Iterable[bytes]) -> bool:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
        if digest.hexdigest() == stated:
            return True
    return False


def told_damage(damaged: Sequence[DamagedLine]) -> str:
    """One line on what is damaged: how much, and the first of it."""
    first = damaged[0]
    many = "1 damaged record or file" if len(damaged) == 1 else f"{len(damaged)} damaged records or files, the first"
    return f"{many}: {first.place}: {first.reason}"
