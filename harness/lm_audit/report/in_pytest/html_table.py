"""Metrics in the table of pytest-html, for those who use that plugin."""

from __future__ import annotations

import json

import pytest

from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.runstore.records import CaseRecord
from lm_audit.stats.estimate import Estimate

METRICS = "lm_audit_metrics"
SHOWN = 3


class MetricColumns:
    """Adds two columns to pytest-html's table: the headline metrics with their intervals, and the verdict."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        """Name the columns, before the links."""
        cells.insert(-1, "<th>Metrics</th>")
        cells.insert(-1, '<th class="sortable" data-column-type="verdict">Verdict</th>')

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: object, cells: list[str]) -> None:
        """Fill them from the properties that the audit attached to its report."""
        from markupsafe import escape

        texts = metric_texts(report)
        more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        cells.insert(-1, f"<td>{escape('; '.join(texts[:SHOWN]) + more)}</td>")
        cells.insert(-1, f"<td>{escape(getattr(report, 'lm_audit_verdict', None) or '')}</td>")

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str], session: pytest.Session) -> None:
        """Name the cases that pytest-html has no row for, since their workers died."""
        from markupsafe import escape

        lost = [case.case_id for case in _cases(session.config) if case.outcome == "crashed"]
        if lost:
            names = "".join(f"<li>{escape(visible(case_id))}</li>" for case_id in lost)
            prefix.append(f"<p>Cases whose worker died:</p><ul>{names}</ul>")


def _cases(config: pytest.Config) -> tuple[CaseRecord, ...]:
    from lm_audit.plugin.record.audit_session import SESSION
    from lm_audit.runstore.run import read_run

    audit = config.stash.get(SESSION, None)
    return read_run(audit.folder.path, shown=True).cases if audit is not None and audit.folder.ledger.is_dir() else ()


def metric_texts(report: object) -> list[str]:
    """``name value [low, high]`` for each metric of a report."""
    found = [value for name, value in getattr(report, "user_properties", ()) if name == METRICS]
    metrics = {name: Estimate.from_json(record) for text in found for name, record in json.loads(text).items()}
    return [visible(f"{name} {value_text(e)} {interval_text(e)}").rstrip() for name, e in metrics.items()]


def pytest_configure(config: pytest.Config) -> None:
    """Only where pytest-html is active."""
    if config.pluginmanager.hasplugin("html"):
        config.pluginmanager.register(MetricColumns(), "lm-audit-html-columns")
