"""What every control asks of the numbers that it reports: do they follow from its rows by another route?

A control that looks at p-values and scores alone passes with intervals half as wide as they should be, with chance
levels that are wrong, and with items that are missing or counted twice. So each of them shows its finished evidence
here. The second route is that of :mod:`lm_audit.sources`, which knows rows and statistics and calls none of the
functions that made the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lm_audit.audits.metric_info import ANY, Range, metric_info
from lm_audit.errors import HarnessError
from lm_audit.evidence import Evidence
from lm_audit.sources.clusters import clusterings
from lm_audit.sources.evaluation import gathered
from lm_audit.sources.opinion.chance_levels import chance_level
from lm_audit.sources.opinion.reach import reach_of, reported_reach
from lm_audit.sources.recomputing import recompute
from lm_audit.sources.record import MetricSource, Where
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import RowTable
from lm_audit.stats.covering import independent_units
from lm_audit.stats.estimate import Estimate

SHORTEST, LONGEST = 0.72, 1.4
"""What an interval's reach may be, as a share of the second opinion's. Right ones lie between 0.86 and 1.25 where it is
sure (``benchmarks/controls``), half and twice as wide ones outside."""

CONFIDENCE = 0.95
"""Of every interval of a control."""

CHANCE_OFF = 0.02
"""How far a chance level may lie from the second opinion, in the metric's unit."""

Level = float | Range
"""A chance level, or between which it lies where the reported one was simulated."""

VALUE_OFF = 1e-6
"""Relative distance of a value from what its rows give."""

BEYOND = 1e-9
"""By how much rounding may put a number outside of its metric's range."""

ENDED = (HarnessError, ArithmeticError, LookupError, ValueError)
"""How numbers end whose items were lost on the way: a mean of none, a side without a row, lists of two lengths."""


def found_wrong(what: str, held: Callable[[], Iterable[str]]) -> list[str]:
    """The faults that ``held`` finds in ``what``; an error on the way to them, which lost items lead to, is one."""
    try:
        return list(held())
    except ENDED as error:
        return [f"{what} cannot be counted again, as where items are lost ({type(error).__name__}: {error})"]


def misreported(
    evidence: Evidence,
    *,
    chances: Mapping[str, Level] | None = None,
    limits: Mapping[str, Range] | None = None,
    counts: Iterable[tuple[Where, int]] = (),
    values: Mapping[str, float] | None = None,
    instead: Mapping[str, MetricSource] | None = None,
) -> list[str]:
    """What of the evidence does not follow from its rows, in sentences; none where all is well.

    Of every metric that value and chance lie where its table says that they can; of one with a source value, number of
    items, reach of the interval, chance level. ``chances``: levels that a source cannot tell, from the caller's own
    formula; a metric that reports a chance nobody here knows is a fault. ``limits``: ranges of metrics whose table
    declares none. ``counts``: how many rows there must be of each kind.
    ``values``: what the caller's own formula gives of metrics that an audit computes, and recomputes, by a function of
    its own; ``instead``: sources of such metrics by a statistic that is known here.
    """
    table, faults = RowTable(evidence.rows), _miscounted(evidence, counts)
    for name, estimate in evidence.metrics.items():
        source = (instead or {}).get(name) or evidence.sources.get(name)
        known = dict(chances or {})
        if source is not None and name not in known and (level := chance_level(source, table)) is not None:
            known[name] = level
        faults += _wrong_chance(name, estimate, known.get(name), demanded=name in (chances or {}))
        info = metric_info(name)
        faults += [] if info is None else _beyond(name, estimate, info.limits)
        if source is None or estimate.value is None:
            continue
        limit = (limits or {}).get(name) or (ANY if info is None else info.limits)
        try:
            faults += _wrong_value(name, estimate, source, table)
            faults += _wrong_count(name, estimate, source, table)
            faults += _wrong_units(name, estimate, source, table)
            faults += _wrong_reach(name, estimate, source, table, limit)
        except ENDED as error:
            faults.append(f"{name}: its source does not fit its rows ({type(error).__name__}: {error})")
    return [*faults, *_unlike(evidence.metrics, values or {})]


def held_by_its_rows(
    evidence: Evidence,
    *,
    also: Sequence[str] = (),
    chances: Mapping[str, Level] | None = None,
    limits: Mapping[str, Range] | None = None,
    counts: Iterable[tuple[Where, int]] = (),
) -> Evidence:
    """The evidence of a control, which fails where something of it, or of ``also``, is misreported."""
    faults = [*misreported(evidence, chances=chances, limits=limits, counts=counts), *also]
    control = evidence.control
    if faults and control is not None:
        observed = f"not so: {'; '.join(faults)}. {control.observed}"
        evidence.control = replace(control, passed=False, observed=observed)
    return evidence


def _miscounted(evidence: Evidence, counts: Iterable[tuple[Where, int]]) -> list[str]:
    table = RowTable(evidence.rows)
    items = [row.get("item") for row in evidence.rows]
    twice = len(items) - len(set(items))
    faults = [f"{twice} of {len(items)} rows are of an item that has one"] if twice else []
    for where, count in counts:
        found = int(table.mask(where).sum())
        if found != count:
            which = ", ".join(f"{name} {value}" for name, value in where.items()) or "all"
            faults.append(f"{found} rows ({which}) where {count} were asked for")
    return faults


def _unlike(metrics: Mapping[str, Estimate], values: Mapping[str, float]) -> list[str]:
    """The metrics that are not what the caller's own formula gives."""
    found = {name: metrics[name].value if name in metrics else None for name in values}
    return [
        f"{name} is {'missing' if told is None else f'{told:.6g}'}, by another formula {values[name]:.6g}"
        for name, told in found.items()
        if told is None or not abs(told - values[name]) <= VALUE_OFF * max(1.0, abs(values[name]))
    ]


def _beyond(name: str, estimate: Estimate, limits: Range) -> list[str]:
    """What lies outside of the range in which a gate may have its limit.

    An interval may: one of t knows no range, and that of a mean of few sizes reaches below 0.
    """
    low, high = limits
    told = {"value": estimate.value, "chance level": estimate.chance}
    return [
        f"the {what} of {name} is {number:.4g}, its table says {low:g} to {high:g}"
        for what, number in told.items()
        if number is not None and not low - BEYOND <= number <= high + BEYOND
    ]


def _wrong_chance(name: str, estimate: Estimate, known: Level | None, *, demanded: bool) -> list[str]:
    if known is None:
        if estimate.chance is None:
            return []
        return [f"{name} reports a chance level of {estimate.chance:.4g}, and nothing gives it one"]
    low, high = known if isinstance(known, tuple) else (known - CHANCE_OFF, known + CHANCE_OFF)
    if estimate.chance is None:
        return [f"{name} reports no chance level, {(low + high) / 2:.4g} is one"] if demanded else []
    if low <= estimate.chance <= high:
        return []
    return [f"{name} reports a chance level of {estimate.chance:.4g}, by another formula it is {(low + high) / 2:.4g}"]


def _wrong_value(name: str, estimate: Estimate, source: MetricSource, table: RowTable) -> list[str]:
    if source.seeded or estimate.value is None:
        return []
    found = recompute(source, table)
    if found is not None and abs(found - estimate.value) <= VALUE_OFF * max(1.0, abs(found), abs(estimate.value)):
        return []
    told = "none" if found is None else f"{found:.6g}"
    return [f"{name} is {estimate.value:.6g}, its rows give {told}"]


def _wrong_count(name: str, estimate: Estimate, source: MetricSource, table: RowTable) -> list[str]:
    if source.statistic not in STATISTICS or estimate.n is None:
        return []
    units, rows = len(gathered(source, table)), int(table.mask(source.where).sum())
    members = source.options.get("members")
    # Of a rank among others, the members are counted alone or with them.
    counted = {units, rows} if members is None else {units, int(gathered(source, table).mask(members).sum())}
    if members is not None and "tier" in source.options:
        found = gathered(source, table)
        counted = {int((found.mask(members) & found.mask(source.options["tier"])).sum())}
    if "first" in source.options:
        # Of two groups, the first one's alone, or both without others that stand beside them.
        first, second = (gathered(source, table).mask(source.options[side]) for side in ("first", "second"))
        counted |= {int(first.sum()), int((first | second).sum())}
    # Units of several answers each may be counted by these.
    answers = source.options.get("denominator", source.options.get("weight"))
    if answers is not None:
        counted.add(round(float(np.nansum(gathered(source, table).numbers(answers)))))
    if estimate.n in counted:
        return []
    return [f"{name} is said to rest on {estimate.n} items, its rows hold {units}"]


def _wrong_units(name: str, estimate: Estimate, source: MetricSource, table: RowTable) -> list[str]:
    """An interval that is said to rest on other independent units than the clusters of its rows: those of the smaller
    of two sides, or those that hold answers.
    """
    told, options = independent_units(estimate), source.options
    if source.statistic not in STATISTICS or estimate.low is None or told is None:
        return []
    units = gathered(source, table)
    sides = [units.mask(options[side]) for side in ("members", "controls", "first", "second") if side in options]
    if sides and "tier" in options:
        sides[0] &= units.mask(options["tier"])
    answers = options.get("denominator", options.get("weight"))
    held = units.mask({}) if answers is None else units.numbers(answers) > 0
    factors = clusterings(source, units)[:2]
    known = min(len(set(factor.codes[side & held])) for factor in factors for side in sides or [held])
    return [] if told == known else [f"{name} is said to rest on {told} independent units, its rows hold {known}"]


def _wrong_reach(name: str, estimate: Estimate, source: MetricSource, table: RowTable, limits: Range) -> list[str]:
    reported = reported_reach(estimate)
    if reported is None or estimate.value is None or estimate.low is None or estimate.high is None:
        return []
    if not estimate.low <= estimate.value <= estimate.high:
        return [f"{name}: its value {estimate.value:.4g} lies outside its interval"]
    if estimate.confidence not in (None, CONFIDENCE):
        return [f"{name}: its interval is one of {estimate.confidence:.1%}, {CONFIDENCE:.0%} was asked for"]
    known = reach_of(estimate, source, table, limits)
    if known is None or SHORTEST * known.least <= reported <= LONGEST * known.most:
        return []
    middle = (known.least * known.most) ** 0.5
    return [f"{name}: its interval reaches {reported:.4g} from its value, by another route {middle:.4g}"]
