"""Gates that this run would hold against nothing, or against each other: said before a model loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from lm_audit.audits.metric_info import declared_names, metric_info, metric_table
from lm_audit.errors import GateError, UsageError
from lm_audit.gates.checks import refuse_contradictions
from lm_audit.gates.gate import Gate
from lm_audit.plugin.audit_cases.markers import AUDITS, audit_of
from lm_audit.plugin.audit_cases.selection import selection_of
from lm_audit.plugin.audit_cases.suite import is_shipped
from lm_audit.plugin.options.audit_options import audit_names
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.shared.names import twin
from lm_audit.shared.number_checks import nearest, suggestion

Reached = tuple[str, str | None]
"""The id of a case, and the name of its model."""

NEAR = 0.75
"""How alike, from 0 to 1, a misspelt name of a metric is at least."""


def refuse_gates_of_absent_models(
    gates: Iterable[Gate], options: RunOptions, path: str, earlier: Iterable[str] = ()
) -> None:
    """``UsageError`` for a gate on a model that the run does not audit: it would be held against nothing.

    A resumed run audits also the models of its ``earlier`` sessions.
    """
    names = list(dict.fromkeys([*(model.name for model in options.models), *earlier]))
    for gate in gates:
        for name in gate.models or ():
            if name not in names:
                raise UsageError(
                    f"gates file {path}, [{gate.metric}]: models names {name!r}, which this run does not audit"
                    f"{twin(name, names) or suggestion(name, names)}; --model gives {', '.join(names)}"
                )


def refuse_contradictory_gates(gates: Sequence[Gate], cases: Iterable[pytest.Item], path: str) -> None:
    """``pytest.UsageError`` for what the file alone does not show: different globs that hold for one selected case."""
    for audit, reached in _by_audit(cases).items():
        own = [gate for gate in gates if gate.metric.partition(".")[0] == audit]
        try:
            refuse_contradictions(own, path, [_reached(item) for item in reached])
        except GateError as error:
            raise pytest.UsageError(str(error)) from error


def gates_in_vain(gates: Iterable[Gate], cases: Iterable[pytest.Item], path: str, *, whole: bool = True) -> list[str]:
    """One line for each gate on selected cases that none of them will be held against, as far as names tell.

    A part of a run (``--shard``, not ``whole``) need not reach every glob.

    Cases of one's own may record any metric: a name that no table declares is told where it is nearly one that is, or
    where all cases of its audit come with the package. The run ends in an error where it turns out so.
    """
    of_audit, found = _by_audit(cases), []
    for gate in gates:
        audit = gate.metric.partition(".")[0]
        own = of_audit.get(audit, [])
        if not own:
            # Without an audit of its own, a case may record a metric of any name.
            reason = None if audit in {*AUDITS, *audit_names()} or None in of_audit else f"no audit is called {audit!r}"
        else:
            reason = _undeclared(gate.metric, audit, own) or (_unreached(gate, own) if whole else None)
        if reason is not None:
            found.append(f"gates file {path}, [{gate.metric}]: {reason}; this gate would be held against nothing")
    return found


def _undeclared(metric: str, audit: str, cases: Iterable[pytest.Item]) -> str | None:
    if not metric_table(audit) or metric_info(metric) is not None:
        return None
    near = nearest(metric, declared_names(audit), NEAR)
    if near is None and not all(is_shipped(Path(item.path)) for item in cases):
        return None
    return f"{audit} has no metric {metric!r}" + (f"; did you mean {near!r}?" if near else "")


def _unreached(gate: Gate, cases: Sequence[pytest.Item]) -> str | None:
    of_models = [one for one in map(_reached, cases) if gate.models is None or one[1] in gate.models]
    if gate.cases is None or not of_models or any(gate.applies(*one) for one in of_models):
        return None
    return f"cases = {gate.cases!r} matches none of the cases that are selected, such as {of_models[0][0]}"


def _by_audit(cases: Iterable[pytest.Item]) -> dict[str | None, list[pytest.Item]]:
    found: dict[str | None, list[pytest.Item]] = {}
    for item in cases:
        found.setdefault(audit_of(item), []).append(item)
    return found


def _reached(item: pytest.Item) -> Reached:
    selection = selection_of(item)
    return item.nodeid, selection.model.name if selection and selection.model else None
