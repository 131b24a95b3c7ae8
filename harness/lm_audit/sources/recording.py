"""All that an audit measured, told to whatever keeps it: a pytest case's recorder, or a report made without pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from lm_audit.sources.counting import with_units

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence
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
            keeper.finding(finding)
    if evidence.headline is not None:
        keeper.headline(evidence.headline)
    return metrics
