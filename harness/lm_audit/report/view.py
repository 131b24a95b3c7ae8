"""What the page shows, as plain records: templates only lay these out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from lm_audit.report.figures import FigureView
from lm_audit.report.states import State
from lm_audit.runstore.records import CaseRecord, Verdict
from lm_audit.stats.estimate import Estimate


@dataclass(frozen=True)
class MetricView:
    """One metric of one case, ready to print."""

    name: str
    label: str
    value: str
    interval: str
    n: str
    chance: str
    bar: Markup
    estimate: Estimate
    verdicts: tuple[Verdict, ...]
    headline: bool
    few: str = ""
    """Why nothing is concluded from the interval, where too few items stand behind it."""


@dataclass(frozen=True)
class ItemsView:
    """The item table of a case: how many rows exist, how many the page holds, and the id of the packed data."""

    data_id: str
    shown: int
    total: int
    damaged: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class CaseView:
    """One case: the record, and everything the page says of it."""

    record: CaseRecord
    anchor: str
    label: str
    state: State
    metrics: tuple[MetricView, ...]
    figures: tuple[FigureView, ...]
    items: ItemsView | None
    parameters: Mapping[str, str]

    @property
    def lead(self) -> MetricView | None:
        """The headline metric, if the case measured anything."""
        return self.metrics[0] if self.metrics else None


@dataclass(frozen=True)
class LeadView:
    """A headline metric over the cases of one cell; ``reading`` says which case it comes from."""

    label: str
    reading: str
    metric: MetricView
    anchor: str


@dataclass(frozen=True)
class CellView:
    """One audit on one model."""

    audit: str
    model: str
    state: State
    leads: tuple[LeadView, ...]
    more: int
    controls: str
    controls_held: bool | None
    cases: str
    gates: str
    anchor: str


@dataclass(frozen=True)
class ModelView:
    """A model of the run with the state that all its audits together give."""

    name: str
    state: State
    fingerprint: str
    detail: str


@dataclass(frozen=True)
class AuditView:
    """One audit: its row of the matrix and its cases."""

    name: str
    anchor: str
    state: State
    cells: tuple[CellView, ...]
    cases: tuple[CaseView, ...]
    void_reasons: tuple[str, ...]
    counts: str


@dataclass(frozen=True)
class Answer:
    """What the page says to "may this model ship?", and why."""

    state: State
    headline: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class PageView:
    """Everything on the page of a run."""

    run_id: str
    answer: Answer
    models: tuple[ModelView, ...]
    audits: tuple[AuditView, ...]
    facts: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    missing: tuple[str, ...]
    damaged: tuple[str, ...]
    finished: bool
    when: str
    data: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None
