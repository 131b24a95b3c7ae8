"""What the page shows, as plain records: templates only lay these out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from lm_audit.report.charts.shown_figures import FigureView
from lm_audit.report.page.states import State, Tone
from lm_audit.runstore.records import CaseRecord, Verdict
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    from lm_audit.report.comparison.finding_change import FindingChange
    from lm_audit.report.comparison.runs import RunComparison


@dataclass(frozen=True)
class MetricView:
    """One metric of one case, ready to print."""

    name: str
    label: str
    hint: str
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
class FindingView:
    """One conclusion, ready to print; what is not known is empty."""

    key: str
    statement: str
    verdict: str
    tone: Tone
    audit: str
    case: str
    anchor: str
    value: str
    interval: str
    unit: str
    bar: Markup
    null: str
    """What it is held against, with its name: no effect, or a limit."""
    few: str
    sure: str
    size: str
    reason: str
    needed: str
    look: str
    docs: str
    exploratory: bool
    hint: str


@dataclass(frozen=True)
class ModelFindings:
    """The conclusions on one model, each group in order of strength; ``void`` counts those of void audits."""

    model: str
    found: tuple[FindingView, ...]
    unknown: tuple[FindingView, ...]
    absent: tuple[FindingView, ...]
    void: int

    @property
    def exploratory(self) -> int:
        """How many are looked at beside the main questions."""
        return sum(view.exploratory for view in (*self.found, *self.unknown, *self.absent))


@dataclass(frozen=True)
class ComparedModels:
    """Two models of the run in pairs: headlines that changed (``telling``), the others, and findings that moved."""

    comparison: RunComparison
    counts: tuple[str, ...]
    telling: tuple[Mapping[str, object], ...]
    rest: tuple[Mapping[str, object], ...]
    moved: tuple[FindingChange, ...]


@dataclass(frozen=True)
class VoidView:
    """Why an audit is void: one line, and all reasons."""

    audit: str
    models: str
    summary: str
    reasons: tuple[str, ...]
    anchor: str


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
    weak: tuple[LeadView, ...]
    """Headline metrics that lead nothing: their intervals cannot be relied on."""
    remark: str
    findings: str
    strongest: FindingView | None
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
    toy: bool = False
    told: tuple[str, ...] = ()


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
    """What the page says to its ``question``, and why; ``tone`` colours it."""

    state: State
    headline: str
    reasons: tuple[str, ...]
    question: str = "May this model ship?"
    tone: Tone = "reported"


@dataclass(frozen=True)
class PageView:
    """Everything on the page of a run."""

    run_id: str
    answer: Answer
    models: tuple[ModelView, ...]
    audits: tuple[AuditView, ...]
    facts: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    findings: tuple[ModelFindings, ...]
    voids: tuple[VoidView, ...]
    missing: tuple[str, ...]
    damaged: tuple[str, ...]
    finished: bool
    when: str
    data: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None
    compared: tuple[ComparedModels, ...] = ()
