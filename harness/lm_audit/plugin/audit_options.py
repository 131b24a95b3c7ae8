"""Finds the options that audits declare in ``harness/lm_audit/audits/<audit>/options.py``."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import lm_audit.audits
from lm_audit.audits.option import AuditOption
from lm_audit.errors import UsageError


@cache
def audit_names() -> tuple[str, ...]:
    """The packages under ``lm_audit.audits``, which are the audits that exist."""
    return tuple(module.name for module in pkgutil.iter_modules(lm_audit.audits.__path__) if module.ispkg)


@cache
def audit_options() -> tuple[AuditOption, ...]:
    """All audits' options; two audits may share a flag only where they declare it alike."""
    found: dict[str, AuditOption] = {}
    for name in audit_names():
        if find_spec(f"lm_audit.audits.{name}.options") is None:
            continue
        for option in import_module(f"lm_audit.audits.{name}.options").OPTIONS:
            if found.setdefault(option.flag, option) != option:
                raise UsageError(f"audit {name}: option {option.flag} is declared otherwise by another audit")
    return tuple(found.values())
