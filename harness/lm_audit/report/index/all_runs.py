"""The page over all runs: answers, tags, and how each headline metric moved from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lm_audit.report.charts.trend import Point, trend
from lm_audit.report.page.rendering import environment, policy, resource
from lm_audit.report.page.states import LABELS, State
from lm_audit.report.tables.summary import read_summary
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import interval_text, moment, value_text
from lm_audit.report.wording.titles import metric_title
from lm_audit.report.writing.of_run import write_text
from lm_audit.runstore.named import begun
from lm_audit.stats.estimate import Estimate


@dataclass(frozen=True)
class RunRow:
    """One run in the list."""

    run_id: str
    when: str
    state: State
    headline: str
    models: tuple[str, ...]
    tags: tuple[str, ...]
    cases: int
    size: str


@dataclass(frozen=True)
class TrendView:
    """One headline metric of one model over the runs that measured it."""

    audit: str
    model: str
    label: str
    metric: str
    value: str
    interval: str
    runs: int
    picture: Markup


def write_index(reports: str | Path) -> Path:
    """Write ``index.html`` over all runs under ``reports``, newest first; the path of the page."""
    folder = Path(reports)
    summaries = sorted(_summaries(folder), key=lambda summary: begun(folder / str(summary["run_id"])))
    rows = [_row(summary) for summary in reversed(summaries)]
    script = resource("static/theme.js") + resource("static/index.js")
    html: str = (
        environment()
        .get_template("index.html.j2")
        .render(
            rows=rows,
            trends=_trends(summaries),
            tags=sorted({tag for row in rows for tag in row.tags}),
            css=Markup(resource("static/page.css")),
            js=Markup(script),
            csp=policy(script),
        )
    )
    return write_text(folder / "index.html", html)


def _summaries(reports: Path) -> Iterable[Mapping[str, Any]]:
    for ledger in reports.glob("*/ledger"):
        summary = read_summary(ledger.parent)
        # A run that was killed before its report was written is listed all the same; a link leads to the folder.
        unread = {"state": "unfinished", "headline": "No report was written yet."}
        yield {**(summary or unread), "run_id": ledger.parent.name}


def _row(summary: Mapping[str, Any]) -> RunRow:
    name = summary.get("state")
    return RunRow(
        run_id=str(summary["run_id"]),
        when=visible(moment(summary.get("when"))),
        state=State(name) if name in LABELS else State("reported"),
        headline=str(summary.get("headline", "")),
        models=tuple(map(str, summary.get("models", ()))),
        tags=tuple(map(str, summary.get("tags", ()))),
        cases=int(summary.get("cases", 0)),
        size=str(summary.get("size") or ""),
    )


def _trends(summaries: Sequence[Mapping[str, Any]]) -> list[TrendView]:
    series: dict[tuple[str, str, str], list[Point]] = {}
    for summary in summaries:
        for entry in summary.get("headlines", ()):
            key = str(entry["audit"]), str(entry["model"]), str(entry["metric"])
            point = Point(str(summary["run_id"]), Estimate.from_json(entry["estimate"]), bool(entry.get("void")))
            series.setdefault(key, []).append(point)
    return [_view(key, points) for key, points in sorted(series.items())]


def _view(key: tuple[str, str, str], points: Sequence[Point]) -> TrendView:
    audit, model, metric = key
    last = points[-1].estimate
    return TrendView(
        audit=visible(audit),
        model=visible(model),
        label=metric_title(metric, audit),
        metric=visible(metric),
        value=value_text(last),
        interval=interval_text(last),
        runs=len(points),
        picture=trend(points),
    )
