"""The pytest plugin: options, markers, cases, fixtures, recording. Imports no torch."""

from __future__ import annotations

from importlib import import_module

import pytest

from lm_audit.plugin.audit_cases.case import Case, cases
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.options.run_options import RunOptions

_MODULES = (
    "lm_audit.plugin.options.command_line",
    "lm_audit.plugin.options.hints",
    # Before the session, which wakes later, so that at the end it comes after: it reads what the session has written.
    "lm_audit.report.in_pytest.hooks",
    "lm_audit.plugin.record.shown_warnings",
    "lm_audit.plugin.activation",
    "lm_audit.plugin.audit_cases.suite",
    "lm_audit.plugin.audit_cases.collection",
    "lm_audit.plugin.audit_cases.fixtures",
    "lm_audit.plugin.parallel.device_slots",
    "lm_audit.plugin.parallel.workers",
    "lm_audit.plugin.parallel.worker_notes",
    "lm_audit.plugin.parallel.shard_option",
    "lm_audit.plugin.parallel.scheduler",
    "lm_audit.plugin.cluster.options",
    "lm_audit.plugin.cluster.start",
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
