"""Evidence: the one shape in which every audit answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lm_audit.audits.metric_info import metric_info, with_direction
from lm_audit.findings.controls import control_finding
from lm_audit.findings.record import Finding
from lm_audit.shared.code_version import code_version
from lm_audit.shared.lazy import from_above
from lm_audit.shared.visible import visible
from lm_audit.sources.record import MetricSource
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

Frame = Literal["metrics", "items", "findings"]
"""What of an evidence a data frame holds."""

ControlRole = Literal["positive", "negative"]
"""A positive control holds a planted effect that must be found, a negative one has none and must stay silent."""

FigureKind = Literal["vega-lite", "tokens", "table"]
"""How the report draws a figure; see :class:`Figure`."""


@dataclass(frozen=True)
class Figure:
    """A picture as data, so that every report draws it in its own way.

    ``kind`` and the ``data`` that goes with it:

    ``"vega-lite"``
        a complete Vega-Lite specification (JSON), its rows inline under ``data.values``;
    ``"tokens"``
        ``{"frames": [{"label": str, "tokens": [{"text": str, "value": float | None, "group": str}]}], "scale":
        "diverging" | "sequential"}``: text coloured by value, one frame a slider position;
    ``"table"``
        ``{"columns": [{"name": str, "title": str}], "rows": [{name: value}]}``.

    All text in ``data`` is hostile: whoever shows it escapes it.
    """

    name: str
    title: str
    kind: FigureKind
    data: Mapping[str, Any]
    caption: str = ""

    def __repr__(self) -> str:
        """Name, kind and title, without the data."""
        return visible(f"<Figure {self.name}: {self.title} ({self.kind})>")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = from_above("lm_audit.report.in_notebook.shown", "figure_bundle")(self)
        return bundle


@dataclass(frozen=True)
class Control:
    """What a control was to show, and whether it did. A control that fails makes its audit's numbers void."""

    role: ControlRole
    passed: bool
    expected: str
    observed: str


@dataclass
class Evidence:
    """What one audit measured: metrics, the items behind them, pictures, files, and how it was done.

    ``rows`` holds one flat mapping an item; each has a key ``item`` that is unique within the case, by which two runs
    are compared pairwise. ``sources`` says of metrics how they follow from those rows. ``headline`` names the metric
    that stands for the audit in a summary. ``code_version`` is that of the code which made it, kept by whoever stores
    evidence: it cannot be recorded as the work of other code. ``findings`` are what is concluded, that of
    a control included.
    """

    audit: str
    metrics: dict[str, Estimate] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    artifacts: list[Path] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    control: Control | None = None
    headline: str | None = None
    notes: list[str] = field(default_factory=list)
    sources: dict[str, MetricSource] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    code_version: str = field(default_factory=code_version)

    def __repr__(self) -> str:
        """One short line: counts, and the headline metric."""
        return str(from_above("lm_audit.report.in_notebook.shown", "text_of")(self))

    def _repr_html_(self) -> str:
        return str(from_above("lm_audit.report.in_notebook.shown", "evidence_html")(self))

    def to_frame(self, what: Frame = "metrics") -> pd.DataFrame:
        """The metrics as a data frame, or the ``"items"`` or the ``"findings"``."""
        frame: pd.DataFrame = from_above("lm_audit.report.in_notebook.frames", "evidence_frame")(self, what)
        return frame

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; a control that failed stays, whatever a later one of the same audit shows."""
        before = self.__dict__.get("control")
        if name == "control" and before is not None and not before.passed and (value is None or value.passed):
            return
        super().__setattr__(name, value)
        if name in ("control", "findings") and self.__dict__.get("control") is not None:
            claims = tuple(one for one in self.__dict__.get("findings", ()) if one.kind == "claim")
            super().__setattr__("findings", (*claims, control_finding(self.control)))

    def finding(self, *findings: Finding) -> None:
        """Add what is concluded; ``ValueError`` if a key is taken or a finding rests on a metric that is not here."""
        for one in findings:
            if any(one.key == other.key for other in self.findings):
                raise ValueError(f"finding {one.key!r} is already stated in this evidence")
            if one.metric is not None and one.metric not in self.metrics:
                raise ValueError(f"finding {one.key!r} rests on the metric {one.metric!r}, which is not recorded")
            self.findings = (*self.findings, _with_unit(one))

    def metric(self, name: str, estimate: Estimate, source: MetricSource | None = None) -> None:
        """Add a metric, and of which rows it was made; ``ValueError`` if the name is taken.

        Its direction is the one that the audit's table declares (:mod:`lm_audit.audits.metric_info`).
        """
        if name in self.metrics:
            raise ValueError(f"metric {name!r} is already recorded in this evidence")
        self.metrics[name] = with_direction(name, estimate)
        if source is not None:
            self.sources[name] = source

    def extend_rows(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Append item rows as plain dictionaries."""
        self.rows.extend(dict(row) for row in rows)


def _with_unit(finding: Finding) -> Finding:
    """The finding with the unit that its metric's table declares, where its effect says none."""
    info = metric_info(finding.metric) if finding.metric and finding.effect and not finding.effect.unit else None
    if info is None or finding.effect is None or not info.unit:
        return finding
    return replace(finding, effect=replace(finding.effect, unit=info.unit))
