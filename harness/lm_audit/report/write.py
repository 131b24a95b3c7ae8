"""Writes every projection of a run store, from the run store alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.report.build import build_page
from lm_audit.report.collect import collect_items
from lm_audit.report.evidence_lines import write_evidence
from lm_audit.report.items import write_items
from lm_audit.report.junit import write_junit
from lm_audit.report.page import render_page
from lm_audit.report.summary import FILE as SUMMARY
from lm_audit.report.summary import run_summary
from lm_audit.report.tidy import write_metrics
from lm_audit.runstore.run import read_run


def write_all(folder: Path) -> Path:
    """Write index.html and all tables of the run in ``folder``; the path of index.html.

    Raises ``StoreError`` where the folder is no run or cannot be written.
    """
    run = read_run(folder)
    try:
        write_metrics(run, csv=folder / "metrics.csv", parquet=folder / "metrics.parquet")
        items = collect_items(run)
        write_items(items.tables, csv=folder / "items.csv", parquet=folder / "items.parquet")
        write_evidence(run, folder / "evidence.jsonl")
        write_junit(run, folder / "junit.xml")
        page = build_page(run, items)
        write_text(folder / SUMMARY, json.dumps(run_summary(run, page)))
        return write_text(folder / "index.html", render_page(page))
    except OSError as error:
        raise StoreError(f"cannot write the report into {folder}: {error.strerror or error}") from error


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` as UTF-8 so that a reader sees the old file or the new one, never half of one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(text.encode("utf-8", "backslashreplace"))
    draft.replace(path)
    return path
