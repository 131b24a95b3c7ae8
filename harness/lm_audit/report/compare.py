"""Compares two runs metric by metric: how much changed, how sure that is, and whether it got worse.

Paired by item where both runs hold the items behind a metric, on two samples where they hold other items, and from the
two intervals alone where the items are not recorded. Holm's adjustment over all tests of the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lm_audit.report.interval_difference import difference_of, scaled
from lm_audit.report.items import case_rows
from lm_audit.report.oriented import turn
from lm_audit.report.paired_items import Column, Rows, all_values, column_of, matched
from lm_audit.report.states import State, case_state
from lm_audit.report.voids import Voids
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.stats.estimate import Estimate

Basis = Literal["paired", "two samples", "intervals", "none"]
Direction = Literal["worse", "better", "changed", "same", "unknown"]
LEVEL = 0.05
ENOUGH = 5
"""Items that both runs must share before they are compared in pairs."""


@dataclass(frozen=True)
class MetricChange:
    """One metric of one case in both runs; ``difference`` is b minus a in the metric's own unit."""

    case_id: str
    case_id_b: str
    audit: str | None
    metric: str
    a: Estimate
    b: Estimate
    difference: Estimate
    p: float | None
    basis: Basis
    pairs: int = 0
    only_a: int = 0
    only_b: int = 0
    void: bool = False
    adjusted: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is at most 0.05."""
        return self.adjusted is not None and self.adjusted <= LEVEL

    @property
    def direction(self) -> Direction:
        """What a significant change means; ``same`` where none was shown."""
        if self.difference.value is None:
            return "unknown"
        if not self.significant:
            return "same"
        before, after = turn(self.a), turn(self.b)
        if before.sign == 0 or self.a.value is None or self.b.value is None:
            return "changed"
        return "worse" if after.apply(self.b.value) > before.apply(self.a.value) else "better"

    @property
    def regression(self) -> bool:
        """A significant change for the worse, of numbers that are not void."""
        return self.direction == "worse" and not self.void


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

    @property
    def regressions(self) -> tuple[MetricChange, ...]:
        """The significant changes for the worse."""
        return tuple(change for change in self.changes if change.regression)


def compare_runs(a: Run, b: Run, *, across_models: bool = False, seed: int = 0) -> RunComparison:
    """What changed from ``a`` to ``b``; cases are matched by id, with ``across_models`` without model and device."""
    cases_a, cases_b = _keyed(a, across_models), _keyed(b, across_models)
    voids_a, voids_b = Voids(a), Voids(b)
    both = [key for key in cases_a if key in cases_b]
    changes: list[MetricChange] = []
    for key in both:
        before, after = cases_a[key], cases_b[key]
        void = before in voids_a or after in voids_b
        changes += (replace(change, void=void) for change in _case_changes(a, b, before, after, seed))
    return RunComparison(
        a=a.run_id,
        b=b.run_id,
        changes=tuple(_adjusted(changes)),
        states=tuple(_state_changes(cases_a, cases_b, both, voids_a, voids_b)),
        appeared=tuple(cases_b[key].case_id for key in cases_b if key not in cases_a),
        vanished=tuple(cases_a[key].case_id for key in cases_a if key not in cases_b),
        remarks=tuple(_remarks(a, b, cases_a, cases_b, both)),
    )


def _keyed(run: Run, across_models: bool) -> dict[str, CaseRecord]:
    if not across_models:
        return {case.case_id: case for case in run.cases}
    return {case.case_id.replace(f"[{case.model}@{case.device}", "[", 1).replace("[-", "["): case for case in run.cases}


def _case_changes(a: Run, b: Run, before: CaseRecord, after: CaseRecord, seed: int) -> list[MetricChange]:
    shared = [name for name in before.last.metrics if name in after.last.metrics]
    # A control has a planted effect: its numbers may move without the model being better or worse.
    if not shared or before.control_role or before.last.control:
        return []
    rows_a, rows_b = case_rows(a, before).rows, case_rows(b, after).rows
    return [_change(before, after, name, rows_a, rows_b, seed) for name in shared]


def _change(before: CaseRecord, after: CaseRecord, name: str, rows_a: Rows, rows_b: Rows, seed: int) -> MetricChange:
    a, b = before.last.metrics[name], after.last.metrics[name]
    nothing = Estimate.not_estimable("no value in one of the runs")
    change = MetricChange(before.case_id, after.case_id, before.audit, name, a, b, nothing, None, "none")
    if a.value is None or b.value is None:
        return change
    column = column_of(name, a, b, rows_a, rows_b)
    if column is None:
        return _by_intervals(change)
    return _by_items(change, rows_a, rows_b, column, seed)


def _by_items(change: MetricChange, rows_a: Rows, rows_b: Rows, column: Column, seed: int) -> MetricChange:
    from lm_audit.stats import compare_independent, compare_paired

    pairs = matched(column, rows_a, rows_b)
    paired = len(pairs.a) >= ENOUGH
    a, b = (pairs.a, pairs.b) if paired else (all_values(column, rows_a), all_values(column, rows_b))
    compare = compare_paired if paired else compare_independent
    result = compare(a, b, seed=seed)
    p = result.test.value
    before, after = turn(change.a), turn(change.b)
    if before != after:
        # The values lie on either side of a target: their distances from it are tested, not the values.
        distances = [before.apply(x * column.scale) for x in a], [after.apply(x * column.scale) for x in b]
        p = compare(*distances, seed=seed).test.value
    return replace(
        change,
        difference=scaled(result.difference, column.scale),
        p=p,
        basis="paired" if paired else "two samples",
        pairs=len(pairs.a),
        only_a=pairs.only_a,
        only_b=pairs.only_b,
    )


def _by_intervals(change: MetricChange) -> MetricChange:
    difference, p = difference_of(change.a, change.b)
    return replace(change, difference=difference, p=p, basis="none" if difference.low is None else "intervals")


def _adjusted(changes: list[MetricChange]) -> list[MetricChange]:
    from lm_audit.stats import holm

    # Void numbers are shown, but they neither fail a comparison nor make the others' tests harder.
    p = holm([None if change.void else change.p for change in changes])
    return [replace(change, adjusted=value) for change, value in zip(changes, p, strict=True)]


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


def _remarks(
    a: Run, b: Run, cases_a: Mapping[str, CaseRecord], cases_b: Mapping[str, CaseRecord], both: list[str]
) -> list[str]:
    remarks = []
    if cases_a and cases_b and not both:
        remarks.append("no case is in both runs; --across-models matches cases without their model and device")
    for run in (a, b):
        if run.missing:
            remarks.append(f"{run.run_id} is incomplete: {len(run.missing)} planned cases never ended")
    sizes = a.metadata.get("size"), b.metadata.get("size")
    if sizes[0] != sizes[1]:
        remarks.append(f"the runs differ in size: {sizes[0]} and {sizes[1]}")
    return remarks
