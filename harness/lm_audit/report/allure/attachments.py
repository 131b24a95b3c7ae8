"""Attachments of an Allure result: metrics, plots as images, coloured text, items, the case's own files."""

from __future__ import annotations

import csv
import io
import json
import mimetypes
import re
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from markupsafe import Markup

from lm_audit.errors import HarnessError, StoreError
from lm_audit.evidence import Figure
from lm_audit.report.charts import vega
from lm_audit.report.charts.shown_figures import FigureDrawer
from lm_audit.report.page.rendering import environment, policy, resource
from lm_audit.report.wording.names import visible
from lm_audit.runstore.inside import file_inside
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.shared.spreadsheet import as_text
from lm_audit.shared.textfiles import replacing

ROWS_LIMIT = 5_000_000
"""Bytes of item rows up to which they are attached; above it the run store has them."""
_NAMESPACE = uuid.UUID("6d9c1a52-3c0f-4b43-9a57-3f8d2b5e7c11")


def attachments(run: Run, case: CaseRecord, results: Path) -> list[dict[str, str]]:
    """Write the attachments of one case beside its result; what the result must say of them."""
    made = []
    for name, kind, suffix, content in _contents(run, case):
        # The same case and name give the same file, so that running it again replaces files and adds none.
        source = f"{uuid.uuid5(_NAMESPACE, ascii(case.case_id) + name)}-attachment{suffix}"
        with replacing(results / source) as draft:  # an earlier result names the same file
            draft.write_bytes(content)
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
        content = _content(run, name, ROWS_LIMIT)
        if content is not None:
            yield "items.jsonl", "text/plain", ".jsonl", content
    for artifact in case.last.artifacts:
        content = _content(run, artifact.path)
        if content is not None:
            path = PurePosixPath(artifact.path)
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            # A page of someone else's making would run its scripts inside the report.
            kind = "text/plain" if kind in ("text/html", "image/svg+xml", "application/xhtml+xml") else kind
            suffix = path.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", path.suffix) else ""
            yield path.name, kind, suffix, content


def _content(run: Run, name: str, limit: int | None = None) -> bytes | None:
    """A file of the run, None where it is absent, lies outside of the run folder, or is larger than ``limit``."""
    try:
        path = file_inside(run.folder, name)
        return path.read_bytes() if limit is None or path.stat().st_size <= limit else None
    except (OSError, StoreError):
        return None


def _csv(metrics: dict[str, dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ["value", "low", "high", "n", "confidence", "chance", "unit", "better", "method", "note"]
    writer.writerow(["metric", *columns])
    for name, estimate in metrics.items():
        writer.writerow([as_text(name), *(as_text(estimate.get(column)) for column in columns)])
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
    except (HarnessError, ValueError, TypeError) as error:
        return title, "text/plain", ".txt", str(error).encode("utf-8", "backslashreplace")
