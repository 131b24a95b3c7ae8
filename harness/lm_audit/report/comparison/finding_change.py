"""One finding in two runs, or on two models: what each says, and whether its metric changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.findings.record import Finding
from lm_audit.report.comparison.metric_change import MetricChange, Outcome
from lm_audit.runstore.records import CaseRecord


@dataclass(frozen=True)
class FindingChange:
    """A question that both sides were asked: ``a`` and ``b`` are their findings.

    ``direction`` is what the paired comparison shows of the metric on which the finding rests: that two verdicts differ
    does not say that the effects do. ``None`` where that metric was not compared.
    """

    audit: str | None
    case_id: str
    case_id_b: str
    a: Finding
    b: Finding
    direction: Outcome | None
    void: bool = False

    @property
    def moved(self) -> bool:
        """Whether the verdict is another one."""
        return self.a.verdict != self.b.verdict

    @property
    def told(self) -> bool:
        """Whether it says something else now: another verdict, or the same of the other side."""
        return self.moved or self.direction == "reversed"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "key": self.a.key,
            "audit": self.audit,
            "case_id": self.case_id,
            "case_id_b": self.case_id_b,
            "a": {"verdict": self.a.verdict, "statement": self.a.statement, "size": self.a.amount},
            "b": {"verdict": self.b.verdict, "statement": self.b.statement, "size": self.b.amount},
            "moved": self.moved,
            "direction": self.direction,
            "void": self.void,
        }


def finding_changes(
    cases: Iterable[tuple[CaseRecord, CaseRecord, bool]], changes: Sequence[MetricChange]
) -> list[FindingChange]:
    """The claims of matched cases (with whether they are void) by key, those that say something else first."""
    directions: Mapping[tuple[str, str], Outcome] = {(c.case_id, c.metric): c.direction for c in changes}
    found = []
    for before, after, void in cases:
        later = {finding.key: finding for finding in after.last.findings if finding.kind == "claim"}
        for finding in before.last.findings:
            if finding.key in later:
                direction = directions.get((before.case_id, finding.metric or ""))
                found.append(
                    FindingChange(
                        before.audit, before.case_id, after.case_id, finding, later[finding.key], direction, void
                    )
                )
    return sorted(found, key=lambda change: (not change.told, not change.a.headline))
