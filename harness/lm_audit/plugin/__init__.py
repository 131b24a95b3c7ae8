"""The pytest plugin: options, markers, cases, fixtures, recording. Imports no torch."""

from __future__ import annotations

from importlib import import_module

import pytest

from lm_audit.plugin.case import Case, cases
from lm_audit.plugin.model_choice import ModelChoice
from lm_audit.plugin.run_options import RunOptions

_MODULES = (
    "lm_audit.plugin.options",
    # Before the session, which wakes later, so that at the end it comes after: it reads what the session has written.
    "lm_audit.report.pytest_hooks",
    "lm_audit.plugin.activation",
    "lm_audit.plugin.suite",
    "lm_audit.plugin.collection",
    "lm_audit.plugin.fixtures",
    "lm_audit.plugin.slots",
    "lm_audit.plugin.workers",
    "lm_audit.plugin.notes",
    "lm_audit.plugin.shards",
    "lm_audit.plugin.scheduler",
    "lm_audit.plugin.ray_options",
    "lm_audit.plugin.ray_start",
)
"""What every run has; ``lm_audit.plugin.activation`` names what only a run with audit cases has."""

__all__ = ["Case", "ModelChoice", "RunOptions", "cases"]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the modules that hold the hooks, in their order.

    Not by ``pytest_plugins``, which asks for assertions to be rewritten in modules that have been imported by then, and
    warns of it in every run of an installed distribution.
    """
    for name in _MODULES:
        if not pluginmanager.has_plugin(name):
            pluginmanager.register(import_module(name), name)
