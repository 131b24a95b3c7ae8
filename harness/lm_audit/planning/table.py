"""The plan as lines of text: gates first, then what the headline metrics can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from lm_audit.audits.metric_info import declared_names, metric_info, metric_table
from lm_audit.gates.gate import Gate
from lm_audit.planning.collecting import Collected, PlannedDesign
from lm_audit.planning.forecast import cannot_decide, forecast, units_needed
from lm_audit.shared.number_checks import suggestion


def lines(now: Collected, larger: Mapping[str, Collected]) -> Iterator[str]:
    """What ``now`` can decide; ``larger`` holds the same selection at the larger sizes, smallest first."""
    skipped = f", {now.skipped} skipped" if now.skipped else ""
    limit = "" if now.limit is None else f" and --limit {now.limit}"
    yield f"{_count(now.cases)} at size {now.size}{limit}{skipped}; nothing was run and no model loaded"
    if now.gates:
        yield from ("", "gates")
        for gate in now.gates:
            yield from _gate(gate, now, larger)
    if not now.cases and not now.refused:
        yield "nothing of it measures a model: controls and skipped cases alone have no plan"
        return
    yield from ("", "headline metrics (half width of a 95% interval; smallest effect found with power 0.8)")
    for entry, cases in _grouped(one for one in now.designs if one.design.headline):
        yield from _headline(entry, cases)
    for case_id, error in list(now.refused.items())[:3]:
        yield f"  {case_id} will end in an error: {error}"
    if len(now.refused) > 3:
        yield f"  and {_count(len(now.refused) - 3)} more"
    if now.undeclared:
        more = f" and {len(now.undeclared) - 3} more" if len(now.undeclared) > 3 else ""
        yield f"  of {_count(len(now.undeclared))} nothing is known beforehand: {', '.join(now.undeclared[:3])}{more}"


def _gate(gate: Gate, now: Collected, larger: Mapping[str, Collected]) -> Iterator[str]:
    held = _held(gate, now)
    yield f"  {gate.metric} {gate.limit}"
    if not held:
        yield f"    {_unheld(gate, now)}"
        return
    for entry, cases in _grouped(held):
        design = entry.design
        reason = cannot_decide(design, gate)
        where = f"    {_cases(entry, cases)}: {_units(entry)}"
        if reason is None:
            yield f"{where}, {_shows(entry)}; can be decided"
            continue
        yield f"{where}; CANNOT BE DECIDED at this size: {reason}"
        yield f"      {_remedy(gate, entry, now, larger)}"


def _unheld(gate: Gate, now: Collected) -> str:
    """Why no design is held against the gate: its cases, its name, or that the metric is not foreseen."""
    named = [entry for entry in now.designs if fnmatchcase(gate.metric, entry.design.metric)]
    if named:
        key, value = ("models", list(gate.models or ())) if gate.cases is None else ("cases", gate.cases)
        return f"{key} = {value!r} matches none of the cases that declare it, such as {named[0].case_id}"
    audit = gate.metric.partition(".")[0]
    if metric_table(audit) and metric_info(gate.metric) is None:
        hint = suggestion(gate.metric, declared_names(audit))
        return f"no case of this selection declares such a metric, nor does the table of {audit!r}{hint}"
    return "no case of this selection declares such a metric: whether it can be decided is not known beforehand"


def _count(cases: int) -> str:
    return f"{cases} case" if cases == 1 else f"{cases} cases"


def _held(gate: Gate, collected: Collected) -> list[PlannedDesign]:
    return [
        entry
        for entry in collected.designs
        if fnmatchcase(gate.metric, entry.design.metric) and gate.applies(entry.case_id, entry.model)
    ]


def _remedy(gate: Gate, entry: PlannedDesign, now: Collected, larger: Mapping[str, Collected]) -> str:
    """The size of the run, or the number of units, that could decide the gate."""
    for size, collected in larger.items():
        able = [one for one in _same(entry, _held(gate, collected)) if cannot_decide(one.design, gate) is None]
        if able:
            return f"--size {size} could: {_units(max(able, key=lambda one: one.design.units or 0))}"
    needed = units_needed(entry.design, gate)
    if needed is None:
        return "no number of units could: look at the limit"
    if now.limit is not None:
        return f"{entry.design.many(needed)} could: a larger --limit, or none"
    return f"{entry.design.many(needed)} could, more than any --size has of these data"


def _same(entry: PlannedDesign, found: Sequence[PlannedDesign]) -> list[PlannedDesign]:
    """The case itself as another size has it; where that size has other cases, those of the same test and metric."""
    same = [one for one in found if one.design.metric == entry.design.metric]
    itself = [one for one in same if (one.case_id, one.model) == (entry.case_id, entry.model)]
    test = entry.case_id.partition("[")[0]
    return itself or [one for one in same if one.case_id.partition("[")[0] == test]


def _headline(entry: PlannedDesign, cases: int) -> Iterator[str]:
    found = forecast(entry.design)
    start = f"  {entry.design.metric}: {_cases(entry, cases)}, {_units(entry)}"
    yield f"{start}; no verdict can come of it: {found.reason}" if found.reason else f"{start}, {_shows(entry)}"


def _shows(entry: PlannedDesign) -> str:
    found = forecast(entry.design)
    unit = " SD of one" if found.relative else f" {entry.design.unit}" if entry.design.unit else ""
    parts = [f"half width {found.half_width:.3g}{unit}" if found.half_width is not None else ""]
    parts.append(f"finds {found.detectable:.3g}{unit}" if found.detectable is not None else "")
    if entry.design.steps:
        return f"one of {', '.join(f'{step:,g}' for step in entry.design.steps)}{unit}"
    return ", ".join(part for part in parts if part) or "a lower bound"


def _units(entry: PlannedDesign) -> str:
    return "units unknown" if entry.design.units is None else entry.design.many(entry.design.units)


def _grouped(entries: Iterable[PlannedDesign]) -> list[tuple[PlannedDesign, int]]:
    """Cases of one test that have the same design, once with their number."""
    groups: dict[tuple[object, ...], list[PlannedDesign]] = {}
    for entry in entries:
        groups.setdefault((entry.case_id.partition("[")[0], entry.design), []).append(entry)
    return [(group[0], len(group)) for group in groups.values()]


def _cases(entry: PlannedDesign, cases: int) -> str:
    test, _, inner = entry.case_id.rpartition("::")[2].partition("[")
    case = inner.removesuffix("]")
    return f"{test}, {cases} cases ({case}, ...)" if cases > 1 and case else case or test


def as_json(now: Collected) -> list[dict[str, object]]:
    """Every design with its forecast and the gates held against it, as plain values."""
    return [_record(entry, now.gates) for entry in now.designs]


def _record(entry: PlannedDesign, gates: Sequence[Gate]) -> dict[str, object]:
    found = forecast(entry.design)
    held = [
        {
            "limit": gate.limit,
            "cannot_decide": cannot_decide(entry.design, gate),
            "units_needed": units_needed(entry.design, gate),
        }
        for gate in gates
        if fnmatchcase(gate.metric, entry.design.metric) and gate.applies(entry.case_id, entry.model)
    ]
    return {
        "case_id": entry.case_id,
        "model": entry.model,
        "metric": entry.design.metric,
        "headline": entry.design.headline,
        "units": entry.design.units,
        "counted": entry.design.counted,
        "half_width": found.half_width,
        "detectable": found.detectable,
        "in_sd": found.relative,
        "unit": entry.design.unit,
        "no_verdict": found.reason,
        "gates": held,
    }
