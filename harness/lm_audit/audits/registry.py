"""Which audits exist: packages beside this that have metrics, and those that distributions name by an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from lm_audit.errors import UsageError

GROUP = "lm_audit.audits"
"""An entry point of this group is called like the audit's marker; its value is the package that holds the audit."""


@cache
def audit_packages() -> Mapping[str, str]:
    """Package by name of audit; ``UsageError`` where a distribution takes a name that is in use."""
    own = sorted(path.parent.name for path in Path(__file__).parent.glob("*/metric_table.py"))
    packages = {name: f"lm_audit.audits.{name}" for name in own}
    for entry in entry_points(group=GROUP):
        if packages.setdefault(entry.name, entry.value) != entry.value:
            raise UsageError(
                f"two audits are called {entry.name!r}: {packages[entry.name]} and {entry.value} (entry point of group "
                f"{GROUP}); one of their distributions must choose another name"
            )
    return packages
