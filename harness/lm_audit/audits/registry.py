"""Which audits exist: the packages beside this module, and those that other distributions name by an entry point."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

import lm_audit.audits
from lm_audit.errors import UsageError

GROUP = "lm_audit.audits"
"""An entry point of this group is called like the audit's marker; its value is the package that holds the audit."""


@cache
def audit_packages() -> Mapping[str, str]:
    """Package by name of audit; ``UsageError`` where a distribution takes a name that is in use."""
    own = [module.name for module in pkgutil.iter_modules(lm_audit.audits.__path__) if module.ispkg]
    packages = {name: f"lm_audit.audits.{name}" for name in own}
    for entry in entry_points(group=GROUP):
        if packages.setdefault(entry.name, entry.value) != entry.value:
            raise UsageError(
                f"two audits are called {entry.name!r}: {packages[entry.name]} and {entry.value} (entry point of group "
                f"{GROUP}); one of their distributions must choose another name"
            )
    return packages
