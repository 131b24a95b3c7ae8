"""Gates that cannot be meant: a limit that no value of the metric reaches, tables that pull apart, unclear names."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import chain, combinations

from lm_audit.audits.metric_info import declared_names, metric_info, range_text
from lm_audit.errors import GateError
from lm_audit.gates.gate import Gate
from lm_audit.shared.names import alike, told_apart, twin, unreadable
from lm_audit.shared.visible import is_blank


def refuse_unclear_metric(metric: str, where: str) -> None:
    """``GateError`` for a name that no metric can have, and for one that looks like a declared metric and is not it.

    Letters of other scripts and hidden ones are part of names: an audit may put groups of people into them.
    """
    if is_blank(metric) or metric != metric.strip() or metric.startswith(".") or metric.endswith("."):
        raise GateError(f"{where}: {metric!r} is no name of a metric; write AUDIT.METRIC, such as needle.accuracy")
    declared = [name for name in declared_names(metric.partition(".")[0]) if "{" not in name]
    if metric not in declared and (hint := twin(metric, declared)):
        raise GateError(f"{where}: no metric is called {metric!r}{hint}")


def refuse_out_of_range(gate: Gate, where: str) -> None:
    """``GateError`` for a limit outside of the range that the audit's table declares of the metric.

    Such a limit is met or missed whatever the model does: mostly a share written as a percentage. A metric that no
    table declares has no range.
    """
    info = metric_info(gate.metric)
    if info is None:
        return
    low, high = info.limits
    span = f"{gate.metric} lies in {low:g} to {high:g}" if math.isfinite(low + high) else ""
    span = span or f"{gate.metric} is {range_text(info.limits)}"
    unit = f" ({info.unit})" if info.unit else ""
    for value in gate.named:
        slack = 1e-9 * abs(value)  # the target between two rounded bounds
        if not low - slack <= value <= high + slack:
            raise GateError(f"{where}: the limit {gate.limit} is outside of the range: {span}{unit}")
    if gate.low < low and gate.high > high:
        raise GateError(f"{where}: the limit {gate.limit} holds of every value: {span}{unit}")


def refuse_unclear_models(models: Iterable[str], where: str) -> None:
    """``GateError`` for names of ``models`` that cannot be read, stand there twice, or look alike."""
    seen: set[str] = set()
    for name in models:
        fault = unreadable(name)
        if fault is not None:
            raise GateError(f"{where}: models names {name!r}, which {fault}")
        if name in seen:
            raise GateError(f"{where}: models names {name!r} twice")
        seen.add(name)
    pair = alike(sorted(seen))
    if pair is not None:
        raise GateError(f"{where}: models names {told_apart(pair[0])} and {told_apart(pair[1])}, which look alike")


def refuse_contradictions(gates: Collection[Gate], path: object, cases: Iterable[tuple[str, str | None]] = ()) -> None:
    """``GateError`` where two gates say different things of one metric of one model.

    Two gates meet where their ``models`` share a name (none given: all) and their ``cases`` are the same glob or one
    gives none, or where both hold for one of ``cases``, given as id and model. Then a limit written twice, two upper or
    two lower limits, and a lower limit above the upper one are refused: one of the two would decide nothing, or both
    together fail every model. An upper and a lower limit that leave room between them are a band.
    """
    known = tuple(cases)
    by_metric: dict[str, list[Gate]] = {}
    for gate in gates:
        by_metric.setdefault(gate.metric, []).append(gate)
    for first, second in chain.from_iterable(combinations(same, 2) for same in by_metric.values()):
        if (fault := _conflict(first, second)) and _meet(first, second, known):
            raise GateError(
                f"gates file {path}, [{first.metric}]: the limits {first.limit} and {second.limit} hold for the same "
                f"model and cases{_of(first, second)}, and {fault}; give each its own models or cases, or keep one"
            )


def _conflict(first: Gate, second: Gate) -> str | None:
    if (first.low, first.high, first.n_min) == (second.low, second.high, second.n_min):
        return "say the same twice"
    if first.high < second.low or second.high < first.low:
        return "no value can meet both"
    both_up = math.isfinite(first.high) and math.isfinite(second.high)
    both_down = math.isfinite(first.low) and math.isfinite(second.low)
    return "decide it differently" if both_up or both_down else None


def _meet(first: Gate, second: Gate, cases: Iterable[tuple[str, str | None]]) -> bool:
    if first.models is not None and second.models is not None and not set(first.models) & set(second.models):
        return False
    if first.cases is None or second.cases is None or first.cases == second.cases:
        return True
    return any(first.applies(*case) and second.applies(*case) for case in cases)


def _of(first: Gate, second: Gate) -> str:
    globs = [glob for glob in dict.fromkeys((first.cases, second.cases)) if glob is not None]
    return f" ({' and '.join(map(repr, globs))})" if globs else ""
