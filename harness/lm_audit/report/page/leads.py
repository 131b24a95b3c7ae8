"""Which numbers lead a cell of the matrix: those that can be relied on, each group's worst by its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_audit.gates.gate import worst
from lm_audit.report.comparison.direction import turn
from lm_audit.report.page.view import CaseView, LeadView, MetricView
from lm_audit.report.wording.numbers import is_p_value, value_text
from lm_audit.stats.covering import CONFIDENCE, FEWEST, independent_units, shortcoming
from lm_audit.stats.estimate import Estimate

Group = list[tuple[CaseView, MetricView]]


def leads_of(cases: Iterable[CaseView]) -> tuple[list[LeadView], list[LeadView], str]:
    """The headline metrics whose intervals can be relied on, those that have none such, and a remark on these.

    A number without an interval, or of too few items, leads nothing: what it says may be chance.
    """
    groups: dict[str, Group] = {}
    for case in cases:
        for metric in case.metrics:
            if metric.headline and metric.estimate.value is not None and not is_p_value(metric.estimate):
                groups.setdefault(metric.name, []).append((case, metric))
    leads: list[LeadView] = []
    without: list[Group] = []
    for group in groups.values():
        sound = [(case, metric) for case, metric in group if can_lead(metric.estimate)]
        if sound:
            leads.append(_lead(sound, len(group)))
        else:
            without.append(group)
    return leads, [_lead(group, len(group)) for group in without], _remark(without)


def can_lead(estimate: Estimate) -> bool:
    """Whether a number may stand first: its interval covers, and it is no mean of a handful, however exact."""
    units = independent_units(estimate)
    return shortcoming(estimate) is None and (units is None or units >= FEWEST)


def _remark(groups: Sequence[Group]) -> str:
    if not groups:
        return ""
    counted = [f"{len(group)} case{'' if len(group) == 1 else 's'}" for group in groups]
    named = ", ".join(
        f"{group[0][1].label} ({many}: {_why(group)})" for group, many in zip(groups[:3], counted, strict=False)
    )
    rest = f", and {len(groups) - 3} more" if len(groups) > 3 else ""
    return f"Nothing to conclude from {named}{rest}"


def _why(group: Group) -> str:
    estimates = [metric.estimate for _, metric in group]
    if all(estimate.low is None and estimate.high is None for estimate in estimates):
        return "no interval"
    if all(estimate.confidence is None or estimate.confidence < CONFIDENCE for estimate in estimates):
        return "intervals that do not claim to cover"
    return "too few items" if any(estimate.low != estimate.high for estimate in estimates) else "no spread"


def _lead(group: Group, cases: int) -> LeadView:
    directed = turn(group[0][1].estimate).sign != 0
    missed = [pair for pair in group if worst(pair[1].verdicts) == "missed"]
    shown = missed or group  # A cell that says "missed" shows a number that is beyond its limit.
    case, metric = max(shown, key=lambda pair: at_least(pair[1].estimate)) if directed else shown[0]
    if cases == 1:
        reading = ""
    elif missed:
        which = "the one whose gate was" if len(missed) == 1 else f"one of {len(missed)} whose gates were"
        reading = f"of {cases} cases {which} missed: {case.label}"
    elif directed:
        reading = f"of {cases} cases the worst that is certain: {case.label}"
    else:
        reading = f"first of {cases} cases, {_span(group)}"
    return LeadView(metric.label, reading, metric, case.anchor)


def _span(group: Group) -> str:
    ranked = sorted((metric.estimate for _, metric in group), key=lambda e: e.value or 0.0)
    return f"which span {value_text(ranked[0])} to {value_text(ranked[-1])}"


def at_least(estimate: Estimate) -> float:
    """How bad the interval says that a number is at the least: its good end, growing as it moves away from better.

    Where the metric has a value of chance it is the distance from that. 0 without a direction.
    """
    way = turn(estimate)
    _, low, _ = way.estimate(estimate)
    chance = 0.0 if estimate.chance is None or way.origin else way.sign * estimate.chance
    return (float("-inf") if low is None else low) - chance
