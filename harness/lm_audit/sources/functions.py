"""Statistics of an audit's own: functions of rows, found by name.

An audit keeps them in ``lm_audit/audits/<audit>/statistics.py``::

    STATISTICS = {"needle.cliff": cliff_of_rows}

with ``cliff_of_rows(rows, options) -> float | None``, pure, and without torch. An audit outside this package calls
:func:`register_statistic` when it is imported. A name in a ledger is only ever looked up among these: a run folder from
elsewhere can name a function, not import one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lm_audit.audits.registry import audit_packages

RowFunction = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], float | None]

_REGISTERED: dict[str, RowFunction] = {}


def register_statistic(name: str, function: RowFunction) -> RowFunction:
    """Make ``function(rows, options)`` known as ``name`` (begins with the audit's name and a dot)."""
    if "." not in name:
        raise ValueError(f"statistic {name!r}: a registered name begins with the audit, for example 'needle.cliff'")
    _REGISTERED[name] = function
    return function


def row_function(name: str) -> RowFunction | None:
    """The registered function of that name, ``None`` where there is none."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    audit = name.partition(".")[0]
    package = audit_packages().get(audit)
    if package is None:
        return None
    home = f"{package}.statistics"
    if find_spec(home) is None:
        return None
    function: RowFunction | None = import_module(home).STATISTICS.get(name)
    return function
