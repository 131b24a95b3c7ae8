"""Gates as a file states them.

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, GateError
from lm_audit.gates.checks import (
    refuse_contradictions,
    refuse_out_of_range,
    refuse_unclear_metric,
    refuse_unclear_models,
)
from lm_audit.gates.gate import Gate
from lm_audit.shared.number_checks import is_number, suggestion
from lm_audit.shared.textfiles import read_toml

KEYS = ("max", "min", "target", "within", "n_min", "models", "cases")
_EXAMPLE = "[bias.max_min_disparity] with max = 1.0"


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


def _number(value: float) -> str:
    return f"{value:.6g}"


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
