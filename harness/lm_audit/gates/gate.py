"""Gates: limits on metrics, and the one definition of *met*, *missed* and *undecided*.

A gates file::

    [bias.max_min_disparity]
    max = 1.0            # or min = ..., or target = ... with within = ...
    n_min = 12           # fewer independent units (clusters: --size smoke has 12) leave the gate undecided
    models = ["smollm2"] # names of --model
    cases = "*en-gender*" # glob on the case id, or on what stands between its brackets

A metric with several limits has several tables: ``[[bias.max_min_disparity]]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, GateError
from lm_audit.gates.checks import (
    refuse_contradictions,
    refuse_out_of_range,
    refuse_unclear_metric,
    refuse_unclear_models,
)
from lm_audit.runstore.records import Verdict, VerdictWord
from lm_audit.shared.number_checks import is_number, suggestion
from lm_audit.shared.textfiles import read_toml
from lm_audit.stats.covering import independent_units, shortcoming, too_few, unit_count
from lm_audit.stats.digits import written_apart
from lm_audit.stats.estimate import Estimate

KEYS = ("max", "min", "target", "within", "n_min", "models", "cases")
_EXAMPLE = "[bias.max_min_disparity] with max = 1.0"


@dataclass(frozen=True)
class Gate:
    """A limit on one metric: the interval must lie within ``[low, high]`` (infinite where there is no bound)."""

    metric: str
    low: float = -math.inf
    high: float = math.inf
    limit: str = ""
    n_min: int | None = None
    models: tuple[str, ...] | None = None
    cases: str | None = None

    @property
    def named(self) -> tuple[float, ...]:
        """The values that the limit names: a bound, or the target in the middle of two."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return ((self.low + self.high) / 2,)
        return tuple(bound for bound in (self.low, self.high) if math.isfinite(bound))

    def applies(self, case_id: str, model: str | None) -> bool:
        """Whether the gate holds for a case, by its model and its id.

        A bracket of ``cases`` may stand for itself, so that an id can be copied from where it is shown.
        """
        if self.models is not None and model not in self.models:
            return False
        if self.cases is None:
            return True
        inner = case_id.partition("[")[2].removesuffix("]")
        globs = (self.cases, self.cases.replace("[", "[[]"))
        return any(fnmatchcase(text, glob) for text in (case_id, inner) for glob in globs)


def judge(gate: Gate, estimate: Estimate) -> Verdict:
    """How ``estimate`` stands to ``gate``.

    *met* if the whole interval lies within the limit, *missed* if it lies wholly beyond, else *undecided*. Undecided
    too where the interval does not cover (:func:`lm_audit.stats.covering.shortcoming`: no value, no interval, no width,
    too few independent units) or fewer independent units than ``n_min`` stand behind it; the reason then says on which
    side the interval lies.
    """
    word, reason = _decide(gate, estimate)
    return Verdict(gate.metric, word, gate.limit, reason)


def _decide(gate: Gate, estimate: Estimate) -> tuple[VerdictWord, str]:
    obstacle = shortcoming(estimate)
    if estimate.value is None:
        return "undecided", str(obstacle)
    units = independent_units(estimate)
    if gate.n_min is not None and not too_few(estimate) and (units is None or units < gate.n_min):
        obstacle = obstacle or f"{unit_count(estimate)} of {gate.n_min}"
    word, side = _side(gate, *interval(estimate))
    where = f"{_written(gate, estimate)} {side}"
    if obstacle:
        return "undecided", f"{where}, but {obstacle}"
    return word, where


def _side(gate: Gate, low: float, high: float) -> tuple[VerdictWord, str]:
    if gate.low <= low and high <= gate.high:
        return "met", "is within the limit"
    if high < gate.low or low > gate.high:
        return "missed", "is beyond the limit"
    return "undecided", "straddles the limit"


def worst(verdicts: Iterable[Verdict]) -> VerdictWord | None:
    """*missed* before *undecided* before *met*, None without verdicts."""
    found = {verdict.word for verdict in verdicts}
    order: tuple[VerdictWord, ...] = ("missed", "undecided", "met")
    return next((word for word in order if word in found), None)


def interval(estimate: Estimate) -> tuple[float, float]:
    """The interval that a gate is held against: a bound that was not estimated is infinite, a lone value a point.

    A point decides nothing, it only tells on which side it lies.
    """
    assert estimate.value is not None
    if estimate.low is None and estimate.high is None:
        return estimate.value, estimate.value
    return (-math.inf if estimate.low is None else estimate.low, math.inf if estimate.high is None else estimate.high)


def _written(gate: Gate, estimate: Estimate) -> str:
    """Value and interval with the digits that the interval allows; no end is rounded onto a limit that it is not."""
    texts = written_apart(estimate, [limit for limit in (gate.low, gate.high) if math.isfinite(limit)])
    return " ".join(text for text in texts if text)


def _number(value: float) -> str:
    return f"{value:.6g}"


def judge_case(
    gates: Iterable[Gate],
    metrics: Mapping[str, Estimate],
    case_id: str,
    model: str | None,
    *,
    control: bool = False,
    toy: bool = False,
) -> list[Verdict]:
    """The verdicts of one case: every gate that applies to it and whose metric it recorded.

    A control is never judged: what it measures was planted. ``toy`` says that the case ran on a built-in toy model.
    """
    if control:
        return []
    verdicts = [
        judge(gate, metrics[gate.metric]) for gate in gates if gate.metric in metrics and gate.applies(case_id, model)
    ]
    return [replace(verdict, reason=f"{verdict.reason}; {ON_TOY}") for verdict in verdicts] if toy else verdicts


ON_TOY = "MEASURED ON THE BUILT-IN TOY, which says nothing about a model of yours"


def read_gates(path: str | Path) -> tuple[Gate, ...]:
    """The gates in a TOML file; ``GateError`` names the file, the table and what would be right."""
    try:
        content = read_toml(path)
    except DataError as error:
        raise GateError(f"gates file {error}") from error
    gates = tuple(_gate(name, table, path) for name, table in _tables(content, "", path))
    if not gates:
        raise GateError(f"gates file {path}: it holds no gate; write for example {_EXAMPLE}")
    refuse_contradictions(gates, path)
    return gates


def _tables(content: Mapping[str, object], prefix: str, path: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables that hold limits, by dotted name; a table that holds only tables is part of a name."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            yield from ((name, entry) for entry in value)
        elif isinstance(value, dict):
            inner = {k: v for k, v in value.items() if isinstance(v, dict) or _is_tables(v)}
            if len(inner) < len(value) or not value:
                yield name, {k: v for k, v in value.items() if k not in inner}
            yield from _tables(inner, f"{name}.", path)
        else:
            raise GateError(f"gates file {path}: {name} = {value!r} stands outside of a table; write {_EXAMPLE}")


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _gate(metric: str, table: Mapping[str, object], path: str | Path) -> Gate:
    where = f"gates file {path}, [{metric}]"
    for key in table:
        if key not in KEYS:
            raise GateError(f"{where}: unknown key {key!r}{suggestion(key, KEYS)}; the keys are {', '.join(KEYS)}")
    refuse_unclear_metric(metric, where)
    low, high, limit = _limit(table, where)
    gate = Gate(
        metric=metric,
        low=low,
        high=high,
        limit=limit,
        n_min=_count(table, where),
        models=_models(table, where),
        cases=_glob(table, where),
    )
    refuse_out_of_range(gate, where)
    return gate


def _limit(table: Mapping[str, object], where: str) -> tuple[float, float, str]:
    named = [key for key in ("max", "min", "target") if key in table]
    if len(named) != 1:
        raise GateError(f"{where}: give exactly one of max, min or target, found {', '.join(named) or 'none'}")
    if ("target" in table) != ("within" in table):
        raise GateError(f"{where}: target and within go together, for example target = 50 and within = 5")
    value = _finite(table, named[0], where)
    if named[0] == "max":
        return -math.inf, value, f"<= {_number(value)}"
    if named[0] == "min":
        return value, math.inf, f">= {_number(value)}"
    within = _finite(table, "within", where)
    if within < 0:
        raise GateError(f"{where}: within = {within} is negative")
    if not math.isfinite(value - within) or not math.isfinite(value + within):
        raise GateError(f"{where}: target = {value} with within = {within} leaves the range of numbers")
    return value - within, value + within, f"within {_number(within)} of {_number(value)}"


def _finite(table: Mapping[str, object], key: str, where: str) -> float:
    value = table[key]
    if not is_number(value):
        raise GateError(f"{where}: {key} = {value!r} is not a finite number")
    return float(value)


def _count(table: Mapping[str, object], where: str) -> int | None:
    value = table.get("n_min")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise GateError(f"{where}: n_min = {value!r} is not a whole number of at least 1")
    return value


def _models(table: Mapping[str, object], where: str) -> tuple[str, ...] | None:
    value = table.get("models")
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise GateError(f'{where}: models = {value!r} is not a list of names, for example models = ["smollm2"]')
    refuse_unclear_models(value, where)
    return tuple(value)


def _glob(table: Mapping[str, object], where: str) -> str | None:
    value = table.get("cases")
    if value is not None and (not isinstance(value, str) or not value):
        raise GateError(f'{where}: cases = {value!r} is not a glob, for example cases = "*gender*"')
    return value
