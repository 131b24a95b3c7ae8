"""Finds the options that audits declare in ``harness/lm_audit/audits/<audit>/options.py``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

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
    for name, package in audit_packages().items():
        if find_spec(f"{package}.options") is None:
            continue
        for option in import_module(f"{package}.options").OPTIONS:
            if found.setdefault(option.flag, option) != option:
                raise UsageError(f"audit {name}: option {option.flag} is declared otherwise by another audit")
    return tuple(found.values())
