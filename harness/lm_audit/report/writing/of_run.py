"""Writes every projection of a run store, from the run store alone."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.report.charts.drawing import SHARED
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.report.tables.evidence_lines import write_evidence
from lm_audit.report.tables.item_reading import collect_items
from lm_audit.report.tables.items import write_items
from lm_audit.report.tables.junit import write_junit
from lm_audit.report.tables.summary import FILE as SUMMARY
from lm_audit.report.tables.summary import run_summary
from lm_audit.report.tables.tidy import write_metrics
from lm_audit.runstore.records import DamagedLine
from lm_audit.runstore.run import read_run
from lm_audit.runstore.soundness.beside import told_damage
from lm_audit.shared.textfiles import replacing
from lm_audit.shared.visible import visible


@dataclass(frozen=True)
class Written:
    """The page that was written, and what of the run is damaged."""

    page: Path
    damaged: tuple[DamagedLine, ...]


def write_all(folder: Path) -> Written:
    """Write index.html and all tables of the run in ``folder``.

    Raises ``StoreError`` where the folder is no run or cannot be written.
    """
    run = read_run(folder, shown=True)
    if any(figure.kind == "vega-lite" for case in run.cases for figure in case.last.figures):
        SHARED.start()  # It comes up while the tables are written.
    try:
        with replacing(folder / "metrics.csv") as csv, replacing(folder / "metrics.parquet") as parquet:
            write_metrics(run, csv=csv, parquet=parquet)
        items = collect_items(run)
        with replacing(folder / "items.csv") as csv, replacing(folder / "items.parquet") as parquet:
            write_items(items.tables, csv=csv, parquet=parquet)
        with replacing(folder / "evidence.jsonl") as file:
            write_evidence(run, file)
        with replacing(folder / "junit.xml") as file:
            write_junit(run, file)
        page = build_page(run, items)
        write_text(folder / SUMMARY, json.dumps(run_summary(run, page)))
        return Written(write_text(folder / "index.html", render_page(page)), (*run.damaged, *items.damaged))
    except OSError as error:
        raise StoreError(f"cannot write the report into {folder}: {error.strerror or error}") from error


def warn_of_damage(damaged: tuple[DamagedLine, ...]) -> None:
    """Say on standard error what of a run is damaged."""
    if damaged:
        print(visible(f"warning: {told_damage(damaged)}"), file=sys.stderr)


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` as UTF-8 so that a reader sees the old file or the new one, never half of one."""
    with replacing(path) as draft:
        draft.write_bytes(text.encode("utf-8", "backslashreplace"))
    return path
