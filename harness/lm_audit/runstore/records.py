"""What a run store holds, folded: a run, its cases, and the attempts of each.

The ledger (``ledger/<worker>-<pid>.jsonl``) is the truth; these records are its fold, and everything shown is made of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lm_audit.evidence import Control, Figure
from lm_audit.findings.record import Finding
from lm_audit.shared.lazy import from_above
from lm_audit.shared.visible import visible
from lm_audit.sources.record import MetricSource
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1

Outcome = Literal["passed", "failed", "error", "skipped", "crashed", "unfinished"]
"""``crashed``: its worker died; ``unfinished``: a case start without an end (the run was killed)."""

VerdictWord = Literal["met", "missed", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """One gate held against one metric of one case."""

    metric: str
    word: VerdictWord
    limit: str
    reason: str


@dataclass(frozen=True)
class Artifact:
    """A file the case attached: its path relative to the run folder, and its SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Attempt:
    """One execution of a case."""

    number: int
    outcome: Outcome
    worker: str
    duration_s: float | None
    message: str = ""
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    control: Control | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    headline: str | None = None
    row_files: tuple[str, ...] = ()
    n_rows: int = 0
    row_digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the files of rows as they were written; older runs have none."""
    cause: str | None = None
    """Why a failed attempt failed: ``"gate"`` (a limit was missed), ``"control"``, ``"test"`` (it says so itself), or
    ``"exception"`` (an error broke it)."""
    started: float | None = None
    """Seconds since the epoch."""
    sources: Mapping[str, MetricSource] = field(default_factory=dict)
    """How metrics follow from the rows, where their evidence said so."""
    code_version: str | None = None
    """What the code was that measured this (:mod:`lm_audit.shared.code_version`)."""
    session: int = 0
    """Which session of the run it belongs to, from 1; 0 where an older version did not count."""
    read: Mapping[str, str] = field(default_factory=dict)
    """Files that the eval's code was first seen to read in this attempt, by their path from the project's root (or
    their own, outside of it), and a digest of what they held."""
    findings: tuple[Finding, ...] = ()
    """What is concluded; of a run as read, corrected for the number of findings of the audit on the model."""
    incomplete: bool = False
    """Whether records of it were lost or cannot be read: what is here is not all that it measured."""


@dataclass(frozen=True)
class CaseRecord:
    """A case: its stable id, what it ran on, its last attempt, the earlier ones, and its verdicts.

    ``case_id`` is ``evals/test_bias.py::test_x[MODEL@DEVICE-case]``; ``audit`` is the audit marker it carries. A
    case of a report that was made without pytest says no device.
    ``fingerprint`` hashes case id, model, inputs and audit version; a resumed run skips a case where it is unchanged.
    """

    case_id: str
    audit: str | None
    model: str | None
    device: str | None
    fingerprint: str | None
    last: Attempt
    earlier: tuple[Attempt, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    control_role: str | None = None
    """``"positive"`` or ``"negative"`` where the case is a control, whether or not it came to say so itself."""
    model_details: Mapping[str, Any] = field(default_factory=dict)
    """What the loaded model said of itself: ``fingerprint``, ``dtype``, ``spec``, ``device``."""
    markers: tuple[str, ...] = ()
    toy: bool = False
    """Whether the case measured a built-in toy model, so that its numbers say nothing about a model of the user's."""

    @property
    def ran_on(self) -> str:
        """What stands for model and device in the case's id: ``MODEL@DEVICE``, or ``MODEL`` where no device is said."""
        return f"{self.model}" if self.device is None else f"{self.model}@{self.device}"

    @property
    def is_control(self) -> bool:
        """Whether the case is a control: by its role, or because it recorded what a control showed."""
        return self.control_role is not None or self.last.control is not None

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last attempt."""
        return self.last.outcome


@dataclass(frozen=True)
class PlannedCase:
    """A case that was selected, known before it runs."""

    case_id: str
    audit: str | None = None
    model: str | None = None
    device: str | None = None
    control_role: str | None = None
    pinned: bool = False
    """Whether the case chose its model itself, so that what it shows holds for every model of the run."""
    cost: float = 1.0
    toy: bool = False

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PlannedCase:
        """From the fields of a ``plan`` record; fields this version does not know are ignored.

        Raises ``TypeError`` or ``ValueError`` where it is no such record.
        """
        texts = ("audit", "model", "device", "control_role")
        named = isinstance(record, Mapping) and isinstance(record.get("case_id"), str) and record["case_id"]
        if not named or not all(isinstance(record.get(name), str | None) for name in texts):
            raise ValueError("a planned case must be a mapping with a case_id")
        if not isinstance(record.get("cost", 1.0), int | float):
            raise ValueError(f"the cost of {record.get('case_id')} must be a number")
        return cls(**{name: record[name] for name in cls.__dataclass_fields__ if name in record})


@dataclass(frozen=True)
class DamagedLine:
    """A ledger line that could not be read, or a file that is not what was recorded (line 0): where, and why."""

    file: str
    line: int
    reason: str

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.file}, line {self.line}" if self.line else self.file


@dataclass(frozen=True)
class Run:
    """A whole run as read back from disk.

    ``planned`` lists the ids of all cases that were selected, and ``cases`` has their order; those without a record are
    missing from it, and those in no plan come last, as they began.
    """

    run_id: str
    folder: Path
    schema_version: int
    metadata: Mapping[str, Any]
    cases: tuple[CaseRecord, ...]
    planned: tuple[str, ...] = ()
    damaged: tuple[DamagedLine, ...] = ()
    finished: bool = False
    plan: tuple[PlannedCase, ...] = ()
    sessions: int = 0
    """How many sessions have written to it, 0 where an older version did not count."""
    seconds: float | None = None
    """How long its sessions took by a clock that nobody sets; None where that is not known, and of a merged run."""

    def __repr__(self) -> str:
        """Id, folder and counts."""
        audits = len({case.audit for case in self.cases})
        return visible(f"<Run {self.run_id}: {len(self.cases)} cases of {audits} audits in {self.folder}>")

    @property
    def metrics(self) -> pd.DataFrame:
        """One row a metric, as in ``metrics.csv``."""
        frame: pd.DataFrame = from_above("lm_audit.report.in_notebook.frames", "run_metrics")(self)
        return frame

    @property
    def items(self) -> pd.DataFrame:
        """One row an item of any case, as in ``items.parquet``; read from the run folder on each call."""
        frame: pd.DataFrame = from_above("lm_audit.report.in_notebook.frames", "run_items")(self)
        return frame

    @property
    def findings(self) -> pd.DataFrame:
        """One row a claim, the strongest first."""
        frame: pd.DataFrame = from_above("lm_audit.report.in_notebook.frames", "run_findings")(self)
        return frame

    @property
    def missing(self) -> tuple[str, ...]:
        """Planned cases that never ended."""
        ended = {case.case_id for case in self.cases if case.outcome != "unfinished"}
        return tuple(case_id for case_id in self.planned if case_id not in ended)

    @property
    def absent_parts(self) -> str:
        """Which parts of a divided run are not in this one, in words; empty where it is whole."""
        options, lost = self.metadata.get("options"), self.metadata.get("missing_shards")
        shard = options.get("shard") if isinstance(options, dict) else None
        if isinstance(shard, str) and not shard.endswith("/1"):
            return f"this is shard {visible(shard)[:20]} alone; lm-audit merge makes one run of all"
        if isinstance(lost, list) and lost:
            return f"merged without shard{'s' * (len(lost) > 1)} {visible(', '.join(map(str, lost)))[:200]}"
        return ""
