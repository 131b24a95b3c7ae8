"""A run in a few lines of JSON, from which the index of all runs is made without reading every ledger again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.report.comparison.models_compared import told_comparisons
from lm_audit.report.conclusions.findings_told import told_findings
from lm_audit.report.page.view import PageView
from lm_audit.runstore.inside import SETTINGS, content_inside
from lm_audit.runstore.reader import parsed
from lm_audit.runstore.records import Run
from lm_audit.stats.estimate import Estimate

FILE = "summary.json"
VERSION = 1


def run_summary(run: Run, page: PageView) -> dict[str, Any]:
    """The answer, counts, tags and headline metrics of a run as plain JSON."""
    return {
        "version": VERSION,
        "run_id": run.run_id,
        "when": run.metadata.get("started"),
        "tags": list(_options(run).get("tags") or ()),
        "size": _options(run).get("size") or run.metadata.get("size"),
        "state": page.answer.state.name,
        "headline": page.answer.headline,
        "reasons": list(page.answer.reasons),
        "models": [model.name for model in page.models],
        "cases": len(run.cases),
        "findings": told_findings(run),
        "comparisons": told_comparisons(view.comparison for view in page.compared),
        "headlines": [
            {
                "audit": cell.audit,
                "model": cell.model,
                "metric": lead.metric.name,
                "reading": lead.reading,
                "void": cell.state.name == "void",
                "estimate": lead.metric.estimate.to_json(),
            }
            for audit in page.audits
            for cell in audit.cells
            for lead in (*cell.leads, *cell.weak)
        ],
    }


def _options(run: Run) -> dict[str, Any]:
    options = run.metadata.get("options")
    return dict(options) if isinstance(options, dict) else {}


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of the run in ``folder``, ``None`` where there is none that this version understands."""
    try:
        summary = parsed(content_inside(folder, FILE, most=SETTINGS))
        return summary if isinstance(summary, dict) and summary.get("version") == VERSION and _sound(summary) else None
    except (OSError, ValueError, TypeError, KeyError, StoreError):
        return None


def _sound(summary: dict[str, Any]) -> bool:
    """Whether the fields that an index is made of are what this version writes; raises where they cannot be read."""
    for entry in summary["headlines"]:
        Estimate.from_json(entry["estimate"])
    lists = all(isinstance(summary[name], list) for name in ("models", "tags", "headlines"))
    return lists and isinstance(summary["cases"], int) and isinstance(summary["state"], str)
