"""Finds the options and data sets that audits declare in ``harness/lm_audit/audits/<audit>/options.py``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from lm_audit.audits.option import AuditOption
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import UsageError


@cache
def audit_names() -> tuple[str, ...]:
    """The audits that exist: those of this package and those of others, found by entry point."""
    return tuple(audit_packages())


@cache
def audit_options() -> tuple[AuditOption, ...]:
    """All audits' options; two audits may share a flag only where they declare it alike."""
    found: dict[str, AuditOption] = {}
    for name, module in _modules().items():
        for option in module.OPTIONS:
            if found.setdefault(option.flag, option) != option:
                raise UsageError(f"audit {name}: option {option.flag} is declared otherwise by another audit")
    return tuple(found.values())


@cache
def option_owners() -> Mapping[str, frozenset[str]]:
    """The audits that declare an option, by the key that its value is read by."""
    found: dict[str, set[str]] = {}
    for name, module in _modules().items():
        for option in module.OPTIONS:
            found.setdefault(option.name, set()).add(name)
    return {name: frozenset(audits) for name, audits in found.items()}


@cache
def data_sets() -> Mapping[str, str]:
    """The audit that reads a public set (``--data NAME=...``), by the names that audits declare as ``DATA_SETS``."""
    return {data: name for name, module in _modules().items() for data in getattr(module, "DATA_SETS", ())}


@cache
def _modules() -> Mapping[str, ModuleType]:
    found = {}
    for name, package in audit_packages().items():
        if find_spec(f"{package}.options") is not None:
            found[name] = import_module(f"{package}.options")
    return found
