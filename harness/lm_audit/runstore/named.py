"""Which run is meant: by its path, its id, or as the latest."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path

from lm_audit.errors import UsageError
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.metadata import MOMENT
from lm_audit.runstore.run_record import read_record
from lm_audit.shared.textfiles import is_folder


def find_run(run: str, reports: Path) -> Path:
    """The folder of a run; ``UsageError`` where there is none.

    ``run`` is its path, its id under ``reports``, or ``latest``: the one there that began last.
    """
    for candidate in (Path(run), reports / run):
        if is_folder(candidate / "ledger"):
            return candidate.resolve()
    ledgers = [path for path in reports.glob("*/ledger") if is_folder(path)] if is_folder(reports) else []
    # Of two that began within one second the ids say nothing.
    ledgers.sort(key=lambda path: (begun(path.parent)[0], path.stat().st_mtime_ns))
    known = [path.parent for path in ledgers]
    # One that was killed before it wrote anything is none that could be meant.
    written = [path.parent for path in ledgers if run == "latest" and any(path.iterdir())]
    if written:
        return written[-1].resolve()
    latest = f"; the latest are {', '.join(path.name for path in known[-3:])}" if known else ""
    raise UsageError(f"no run {run!r:.200}: neither a run folder nor a run id under {reports}{latest}")


def begun(folder: Path) -> tuple[float, str]:
    """Sorts run folders by when they began, by ``run.json`` or else by the run's id; unknown ones come first.

    Names alone do not tell: a folder may bear one of its owner's, as those of ``lm_audit.report.report`` do.
    """
    started = str((read_record(RunFolder(folder)).whole or {}).get("started"))
    for text, form in ((started, MOMENT), (folder.name[:15], "%Y%m%d-%H%M%S")):
        with contextlib.suppress(ValueError, OverflowError):
            return datetime.strptime(text, form).timestamp(), folder.name
    return 0.0, folder.name
