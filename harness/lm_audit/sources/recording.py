"""All that an audit measured, told to whatever keeps it: a pytest case's recorder, or a report made without pytest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from lm_audit.sources.counting import with_units

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence
    from lm_audit.findings.record import Finding
    from lm_audit.stats.estimate import Estimate


class Keeper(Protocol):
    """What takes the parts of an evidence one by one."""

    def parameter(self, name: str, value: Any, /) -> Any: ...
    def metric(self, name: str, estimate: Any, source: Any, /) -> Any: ...
    def rows(self, rows: Any, /) -> Any: ...
    def figure(self, figure: Any, /) -> Any: ...
    def attach(self, path: Any, /) -> Any: ...
    def note(self, text: str, /) -> Any: ...
    def finding(self, finding: Any, /) -> Any: ...
    def headline(self, text: Any, /) -> Any: ...


def record_measured(evidence: Evidence, keeper: Keeper) -> dict[str, Estimate]:
    """Everything but the control, which each keeper takes in its own way; of the findings the audit's own claims.

    Returns the metrics as they were told, with their independent units.
    """
    metrics = with_units(evidence)
    for name, value in evidence.parameters.items():
        keeper.parameter(name, value)
    for name, estimate in metrics.items():
        keeper.metric(name, estimate, evidence.sources.get(name))
    keeper.rows(evidence.rows)
    for figure in evidence.figures:
        keeper.figure(figure)
    for path in evidence.artifacts:
        keeper.attach(path)
    for note in evidence.notes:
        keeper.note(note)
    for finding in evidence.findings:
        if finding.kind == "claim":
            keeper.finding(_on_what_was_counted(finding, evidence.metrics, metrics))
    if evidence.headline is not None:
        keeper.headline(evidence.headline)
    return metrics


def _on_what_was_counted(finding: Finding, before: Mapping[str, Estimate], counted: Mapping[str, Estimate]) -> Finding:
    """The finding, decided on as many independent units as its metric has: else it says what a gate leaves open."""
    from lm_audit.findings.deciding import decided

    effect, name = finding.effect, finding.metric
    if effect is None or name is None or name not in before:
        return finding
    made, told = before[name], counted[name]
    if (effect.value, effect.low, effect.high) != (made.value, made.low, made.high):
        return finding
    if effect.units is not None or (told.units, told.fewest) == (made.units, made.fewest):
        return finding
    return decided(replace(finding, effect=replace(effect, units=told.units, fewest=told.fewest)))
