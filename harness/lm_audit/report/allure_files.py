"""Attachments of an Allure result: metrics, plots as images, coloured text, items, the case's own files."""

from __future__ import annotations

import csv
import io
import json
import mimetypes
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lm_audit.errors import HarnessError
from lm_audit.evidence import Figure
from lm_audit.report import vega
from lm_audit.report.figures import FigureDrawer
from lm_audit.report.names import visible
from lm_audit.report.page import environment, policy, resource
from lm_audit.runstore.records import CaseRecord, Run

ROWS_LIMIT = 5_000_000
"""Bytes of item rows up to which they are attached; above it the run store has them."""
_NAMESPACE = uuid.UUID("6d9c1a52-3c0f-4b43-9a57-3f8d2b5e7c11")


def attachments(run: Run, case: CaseRecord, results: Path) -> list[dict[str, str]]:
    """Write the attachments of one case beside its result; what the result must say of them."""
    made = []
    for name, kind, suffix, content in _contents(run, case):
        # The same case and name give the same file, so that running it again replaces files and adds none.
        source = f"{uuid.uuid5(_NAMESPACE, ascii(case.case_id) + name)}-attachment{suffix}"
        (results / source).write_bytes(content)
        made.append({"name": visible(name), "source": source, "type": kind})
    return made


def _contents(run: Run, case: CaseRecord) -> Iterator[tuple[str, str, str, bytes]]:
    if case.last.metrics:
        metrics = {name: estimate.to_json() for name, estimate in case.last.metrics.items()}
        yield "metrics.json", "application/json", ".json", json.dumps(metrics, indent=1).encode()
        yield "metrics.csv", "text/csv", ".csv", _csv(metrics)
    for figure in case.last.figures:
        yield _figure(figure)
    for name in case.last.row_files:
        path = run.folder / name
        if path.is_file() and path.stat().st_size <= ROWS_LIMIT:
            yield "items.jsonl", "text/plain", ".jsonl", path.read_bytes()
    for artifact in case.last.artifacts:
        path = run.folder / artifact.path
        if path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            # A page of someone else's making would run its scripts inside the report.
            kind = "text/plain" if kind in ("text/html", "image/svg+xml", "application/xhtml+xml") else kind
            yield path.name, kind, path.suffix, path.read_bytes()


def _csv(metrics: dict[str, dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ["value", "low", "high", "n", "confidence", "chance", "unit", "better", "method", "note"]
    writer.writerow(["metric", *columns])
    for name, estimate in metrics.items():
        writer.writerow([name, *(estimate.get(column) for column in columns)])
    return out.getvalue().encode("utf-8", "backslashreplace")


def _figure(figure: Figure) -> tuple[str, str, str, bytes]:
    title = figure.title or figure.name
    try:
        if figure.kind == "vega-lite":
            return title, "image/png", ".png", vega.to_png(figure.data)
        view = FigureDrawer().view(figure)
        html: str = (
            environment()
            .get_template("attachment.html.j2")
            .render(figure=view, csp=policy(), style=Markup(resource("static/page.css")))
        )
        return title, "text/html", ".html", html.encode("utf-8", "backslashreplace")
    except HarnessError as error:
        return title, "text/plain", ".txt", str(error).encode("utf-8", "backslashreplace")
