"""What the first run measured and the second does not: verdicts that are lost, for which no change can stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lm_audit.report.comparison.deciding import decides
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import State, case_state
from lm_audit.runstore.records import CaseRecord

Lost = Literal["broke", "without", "refused"]
"""``broke``: the case has no value of any metric; ``without``: a metric that decided it is not recorded, not estimable,
or without anything that says how sure it is; ``refused``: both runs have that metric, and it is not the same thing in
both (other data, another unit)."""


@dataclass(frozen=True)
class LostAudit:
    """An audit that was measured in the first run and in the second is void or was skipped throughout, with why."""

    audit: str
    model: str | None
    reasons: tuple[str, ...]
    skipped: bool = False


@dataclass(frozen=True)
class Unmeasured:
    """A case that was decided in the first run and in the second cannot be.

    ``lacks``: a metric that decided it before, ``reason``: why nothing can be said of that now; both are ``None`` of a
    case that broke, crashed or never ended.
    """

    case_id: str
    state: State
    lacks: str | None = None
    reason: str | None = None
    kind: Lost = "broke"

    @property
    def why(self) -> str:
        """What became of it, in words."""
        return self.state.label if self.lacks is None else f"{self.lacks}: {self.reason}"


Matched = tuple[CaseRecord, CaseRecord]


def is_control(case: CaseRecord) -> bool:
    """Whether the case is a control, whose numbers are no measurements of a model."""
    return bool(case.control_role or case.last.control)


def measured(case: CaseRecord) -> bool:
    """Whether the case is no control and has a value."""
    return not is_control(case) and any(metric.value is not None for metric in case.last.metrics.values())


def unmeasured(
    cases_a: Mapping[str, CaseRecord],
    cases_b: Mapping[str, CaseRecord],
    changes: Mapping[str, Sequence[MetricChange]],
    voids_a: Voids,
    never_ended: frozenset[str],
) -> Iterator[Unmeasured]:
    """Cases that broke, and cases that lost what decided them; a skipped one is no such case.

    ``changes``: those of each matched case; ``never_ended``: planned cases of the second run without an end.
    """
    for key, before in cases_a.items():
        after = cases_b.get(key)
        if not measured(before):
            continue
        if after is None:
            if before.case_id in never_ended:
                yield Unmeasured(before.case_id, State("unfinished"))
            continue
        if after.outcome == "skipped":
            continue
        state = case_state(after, void=False)
        if after.outcome != "passed" and not measured(after):
            yield Unmeasured(after.case_id, state)
        elif before not in voids_a and (lost := _lost_verdicts(before, after, changes.get(key, ()))):
            metric, reason, kind = lost[0]
            more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            yield Unmeasured(after.case_id, state, metric, reason + more, kind)


def _lost_verdicts(
    before: CaseRecord, after: CaseRecord, changes: Sequence[MetricChange]
) -> list[tuple[str, str, Lost]]:
    """The metrics that decided the case before and cannot now, each with why."""
    refused = {change.metric: change.refused for change in changes if change.refused}
    unknown = {change.metric for change in changes if change.direction == "not comparable"}
    found: list[tuple[str, str, Lost]] = []
    for name, metric in before.last.metrics.items():
        if metric.value is None or metric.unit == "p" or not decides(before, name):
            continue
        now = after.last.metrics.get(name)
        if now is None:
            found.append((name, "not recorded", "without"))
        elif now.value is None:
            found.append((name, f"not estimable: {now.note}", "without"))
        elif reason := refused.get(name):
            found.append((name, reason, "refused"))
        elif name in unknown and metric.low is not None and now.low is None:
            found.append((name, "no interval, and no rows that both runs hold", "without"))
    return found


def lost_audits(cases: Iterable[Matched], voids_a: Voids, voids_b: Voids) -> list[LostAudit]:
    """Audits with values in the first run whose numbers became void, or all of whose cases were skipped."""
    found: dict[tuple[str, str | None], LostAudit] = {}
    ran: dict[tuple[str, str | None], list[CaseRecord]] = {}
    for before, after in cases:
        if not after.audit or before in voids_a:
            continue
        key = (after.audit, after.model)
        if after in voids_b and any(metric.value is not None for metric in before.last.metrics.values()):
            found.setdefault(key, LostAudit(*key, voids_b.reasons(*key)))
        if measured(before):
            ran.setdefault(key, []).append(after)
    for key, now in ran.items():
        if key not in found and all(case.outcome == "skipped" for case in now):
            found[key] = LostAudit(*key, tuple(_reasons(now)), skipped=True)
    return list(found.values())


def _reasons(cases: Sequence[CaseRecord]) -> Iterator[str]:
    """Why cases were skipped, each reason once, with how many there are of each."""
    many = Counter(" ".join(case.last.message.split()) or "no reason given" for case in cases)
    yield from (f"{count} case{'' if count == 1 else 's'}: {reason}" for reason, count in many.items())
