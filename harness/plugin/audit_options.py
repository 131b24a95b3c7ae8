"""Finds the options that audits declare in ``harness/audits/<audit>/options.py``."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import harness.audits
from harness.audits.option import AuditOption
from harness.errors import UsageError


@cache
def audit_names() -> tuple[str, ...]:
    """The packages under ``harness.audits``, which are the audits that exist."""
    return tuple(module.name for module in pkgutil.iter_modules(harness.audits.__path__) if module.ispkg)


@cache
def audit_options() -> tuple[AuditOption, ...]:
    """All audits' options; two audits may share a flag only where they declare it alike."""
    found: dict[str, AuditOption] = {}
    for name in audit_names():
        if find_spec(f"harness.audits.{name}.options") is None:
            continue
        for option in import_module(f"harness.audits.{name}.options").OPTIONS:
            if found.setdefault(option.flag, option) != option:
                raise UsageError(f"audit {name}: option {option.flag} is declared otherwise by another audit")
    return tuple(found.values())
