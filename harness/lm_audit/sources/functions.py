"""Statistics of an audit's own: functions of rows, found by name.

An audit keeps them in ``lm_audit/audits/<audit>/statistics.py``::

    STATISTICS = {"needle.cliff": cliff_of_rows}

with ``cliff_of_rows(rows, options) -> float | None``, pure, and without torch. A comparison asks it thousands of times:
where that takes long, ``WEIGHTED`` beside it holds the same statistic for many weightings of the rows at once
(:data:`lm_audit.sources.statistics.Prepare`, over units of one row each). An audit outside this package calls
:func:`register_statistic` when it is imported. A name in a ledger is only ever looked up among these: a run folder from
elsewhere can name a function, not import one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lm_audit.audits.registry import audit_packages

if TYPE_CHECKING:
    from lm_audit.sources.statistics import Prepare

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
    home = _home(name)
    function: RowFunction | None = None if home is None else home.STATISTICS.get(name)
    return function


def weighted_form(name: str) -> Prepare | None:
    """That statistic for many weightings of its rows at once, ``None`` where its audit gives no such form."""
    home = None if name in _REGISTERED else _home(name)
    form: Prepare | None = None if home is None else getattr(home, "WEIGHTED", {}).get(name)
    return form


def _home(name: str) -> ModuleType | None:
    """The module in which the audit keeps its statistics."""
    package = audit_packages().get(name.partition(".")[0])
    if package is None or find_spec(f"{package}.statistics") is None:
        return None
    return import_module(f"{package}.statistics")
