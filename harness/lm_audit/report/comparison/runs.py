"""Compares two runs metric by metric: how much changed, how sure that is, and whether it got worse.

A metric whose evidence names its source is recomputed from the rows of both runs: paired where they hold the same
items, with whole clusters exchanged or resampled, else on two samples. Without a source the intervals are compared.
Headlines are decided, all other metrics are exploratory (:mod:`lm_audit.report.comparison.deciding`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lm_audit.report.comparison.deciding import adjusted, decides, resolution_of
from lm_audit.report.comparison.finding_change import FindingChange, finding_changes
from lm_audit.report.comparison.losing import LostAudit, Unmeasured, is_control, lost_audits, measured, unmeasured
from lm_audit.report.comparison.matching import keyed
from lm_audit.report.comparison.metric_change import Comparing, MetricChange, Outcome
from lm_audit.report.comparison.remarks import redrawn, remarks_on, remarks_on_metrics
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import State, case_state
from lm_audit.report.tables.items import case_rows
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.shared.visible import shown
from lm_audit.sources.units import RowTable

__all__ = ["LostAudit", "MetricChange", "Outcome", "RunComparison", "StateChange", "Unmeasured", "compare_runs"]


@dataclass(frozen=True)
class StateChange:
    """A case whose state differs between the runs."""

    case_id: str
    before: State
    after: State


@dataclass(frozen=True)
class RunComparison:
    """All that differs between run ``a`` (before) and run ``b`` (after)."""

    a: str
    b: str
    changes: tuple[MetricChange, ...]
    states: tuple[StateChange, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    lost: tuple[LostAudit, ...] = ()
    findings: tuple[FindingChange, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    incomparable: bool = False

    @property
    def regressions(self) -> tuple[MetricChange, ...]:
        """The significant changes for the worse of what is decided."""
        return tuple(change for change in self.changes if change.regression)

    @property
    def failed(self) -> bool:
        """Whether run ``b`` is worse or cannot be said not to be.

        A regression, an audit whose numbers are void now and were not before or all of whose cases were skipped, a case
        that was measured and since broke or lost what decided it; or nothing that the first run measured could be
        compared.
        """
        return bool(self.regressions or self.lost or self.unmeasured or self.incomparable)


def compare_runs(a: Run, b: Run, *, across_models: bool = False, seed: int = 0) -> RunComparison:
    """What changed from ``a`` to ``b``; cases are matched by id, with ``across_models`` without model and device.

    ``UsageError`` where ``across_models`` leaves it open which model of one run goes with which of the other.
    """
    cases_a, cases_b = keyed(a, b, across_models)
    voids_a, voids_b = Voids(a), Voids(b)
    both = [key for key in cases_a if key in cases_b]
    resolution = resolution_of([cases_a[key] for key in both if not is_control(cases_a[key])])
    by_case: dict[str, list[MetricChange]] = {}
    remarks = [*remarks_on(a, b, cases_a, cases_b)]
    drawn = redrawn(a, b)
    for key in both:
        before, after = cases_a[key], cases_b[key]
        void = before in voids_a or after in voids_b
        found, damage = _case_changes(a, b, before, after, resolution, seed, drawn)
        remarks += damage
        by_case[key] = [
            replace(one, void=void, decided=decides(before, one.metric) or decides(after, one.metric)) for one in found
        ]
    changes = adjusted([change for found in by_case.values() for change in found])
    remarks += remarks_on_metrics(changes)
    matched = [(cases_a[k], cases_b[k], cases_a[k] in voids_a or cases_b[k] in voids_b) for k in both]
    comparison = RunComparison(
        a=a.run_id,
        b=b.run_id,
        changes=tuple(changes),
        findings=tuple(finding_changes(matched, changes)),
        states=tuple(_state_changes(cases_a, cases_b, both, voids_a, voids_b)),
        appeared=tuple(cases_b[key].case_id for key in cases_b if key not in cases_a),
        vanished=tuple(cases_a[key].case_id for key in cases_a if key not in cases_b),
        remarks=tuple(remarks),
        lost=tuple(lost_audits([(cases_a[key], cases_b[key]) for key in both], voids_a, voids_b)),
        unmeasured=tuple(unmeasured(cases_a, cases_b, by_case, voids_a, frozenset(b.missing))),
        # Of a run whose ledger cannot be read nobody knows what it had measured.
        incomparable=(any(measured(case) for case in cases_a.values()) or bool(a.damaged and not a.cases))
        and all(change.direction == "not comparable" for change in changes),
    )
    # Runs are matched by what they recorded; what is told of them is made safe to show.
    return shown(comparison)


def _case_changes(
    a: Run, b: Run, before: CaseRecord, after: CaseRecord, resolution: float, seed: int, drawn: bool
) -> tuple[list[MetricChange], list[str]]:
    """The changes of a case's metrics, and what was lost of its rows: intervals are compared then, not what is left."""
    # A p-value is no metric: it says how sure a number was, not how large.
    shared = [
        name
        for name, metric in before.last.metrics.items()
        if name in after.last.metrics and metric.unit != "p" and after.last.metrics[name].unit != "p"
    ]
    # A control has a planted effect: its numbers may move without the model being better or worse.
    if not shared or is_control(before):
        return [], []
    read = [(run, case_rows(run, case)) for run, case in ((a, before), (b, after))]
    lost = [
        f"rows of {run.run_id} are damaged, so intervals are compared: {line.file}: {line.reason}"
        for run, rows in read
        for line in rows.damaged[:1]
    ]
    first, second = (RowTable([] if lost else rows.rows) for _, rows in read)
    comparing = Comparing(before, after, first, second, resolution=resolution, seed=seed, redrawn=drawn)
    return [comparing.change(name) for name in shared], lost


def _state_changes(
    cases_a: Mapping[str, CaseRecord],
    cases_b: Mapping[str, CaseRecord],
    both: list[str],
    voids_a: Voids,
    voids_b: Voids,
) -> list[StateChange]:
    found = []
    for key in both:
        before = case_state(cases_a[key], void=cases_a[key] in voids_a)
        after = case_state(cases_b[key], void=cases_b[key] in voids_b)
        if before != after:
            found.append(StateChange(cases_b[key].case_id, before, after))
    return found
