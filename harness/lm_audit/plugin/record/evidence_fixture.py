"""Recorder: the ``evidence`` fixture, which writes what a case measures into the ledger at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from lm_audit.audits.metric_info import with_direction
from lm_audit.errors import StoreError
from lm_audit.evidence import Control, Evidence, Figure
from lm_audit.findings import Finding, control_finding
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.shared.code_version import code_version
from lm_audit.shared.number_checks import suggestion
from lm_audit.shared.progress import OnProgress
from lm_audit.shared.visible import is_blank
from lm_audit.sources.record import MetricSource
from lm_audit.sources.recording import record_measured
from lm_audit.stats.estimate import Estimate


class Recorder:
    """Records metrics, rows, figures and files of one case. Nothing here fails a test but a value that has no form.

    Controls are the exception: one that did not show what it was planted to show fails its case at the end of the call.
    """

    def __init__(self, writer: AttemptWriter):
        self._writer = writer
        self.metrics: dict[str, Estimate] = {}
        self.findings: dict[str, Finding] = {}
        self.failed_controls: list[Control] = []
        self._named: str | None = None
        self.is_control = False
        self.on_progress: OnProgress | None = None

    def metric(self, name: str, estimate: Estimate, source: MetricSource | None = None) -> None:
        """Record a metric by its dotted name, and of which rows it was made; ``StoreError`` if the case has recorded it
        before.
        """
        if not isinstance(name, str) or is_blank(name):
            raise StoreError(f"a metric needs a name, got {name!r}")
        if not isinstance(estimate, Estimate):
            raise StoreError(f"metric {name}: expected an Estimate, got {type(estimate).__name__} {estimate!r}")
        if name in self.metrics:
            raise StoreError(f"metric {name!r} is recorded twice in {self._writer.case_id}")
        told = with_direction(name, estimate)
        self._writer.metric(name, told, source)
        self.metrics[name] = told

    def rows(self, rows: Iterable[Mapping[str, object]]) -> int:
        """Record item rows, each with a key ``item`` that is unique in the case; returns how many."""
        return self._writer.rows(rows)

    def figure(self, figure: Figure) -> None:
        """Record a figure."""
        self._writer.figure(figure)

    def attach(self, path: str | Path) -> None:
        """Copy a file into the run."""
        self._writer.attach(path)

    def parameter(self, name: str, value: object) -> None:
        """Record how something was done."""
        self._writer.parameter(name, value)

    def note(self, text: str) -> None:
        """Record a remark."""
        self._writer.note(text)

    def headline(self, metric: str) -> None:
        """Name the metric that stands for the case in a summary; it may be recorded later."""
        self._writer.headline(metric)
        self._named = metric

    def check_headline(self) -> None:
        """``StoreError`` where the test named a metric that it has not recorded: another would stand for the case."""
        if self._named is not None and self._named not in self.metrics:
            hint = suggestion(str(self._named), self.metrics)
            raise StoreError(f"headline {self._named!r}: the case recorded no metric of that name{hint}")

    def finding(self, finding: Finding) -> None:
        """Record what is concluded; ``StoreError`` if the case has stated it before."""
        if finding.key in self.findings:
            raise StoreError(f"finding {finding.key!r} is stated twice in {self._writer.case_id}")
        self._writer.finding(finding)
        self.findings[finding.key] = finding

    def control(self, role: Literal["positive", "negative"], *, passed: bool, expected: str, observed: str) -> None:
        """Record what a control showed; one that failed fails its case."""
        control = Control(role, bool(passed), expected, observed)
        self._writer.control(control)
        stated = control_finding(control)
        if stated.key not in self.findings or not control.passed:
            self._writer.finding(stated)
            self.findings[stated.key] = stated
        self.is_control = True
        if not control.passed:
            self.failed_controls.append(control)

    def progress(self, done: int, total: int, tokens: int = 0) -> None:
        """Tell how far the case is, for whoever watches; nothing is recorded."""
        if self.on_progress is not None:
            self.on_progress(done, total, tokens)

    def record(self, evidence: Evidence) -> None:
        """Record all that an audit returned; ``StoreError`` if other code made it (a cache that outlived the code)."""
        if evidence.code_version != code_version():
            raise StoreError(
                f"evidence of the {evidence.audit} audit was made by code {evidence.code_version}, this is "
                f"{code_version()}: what is signed must have run; remove the cache that it came from"
            )
        named = self._named
        record_measured(evidence, self)
        self._named = named  # An audit may leave a metric out, and says why.
        if evidence.control is not None:
            control = evidence.control
            self.control(control.role, passed=control.passed, expected=control.expected, observed=control.observed)
