"""The pytest plugin: options, markers, cases, fixtures, recording. Imports no torch."""

from __future__ import annotations

from importlib import import_module

import pytest

from harness.plugin.case import Case, cases
from harness.plugin.model_choice import ModelChoice
from harness.plugin.run_options import RunOptions

_MODULES = (
    "harness.plugin.options",
    # Before the session, so that at the end it comes after: it reads what the session has written.
    "harness.report.pytest_hooks",
    "harness.report.pytest_html",
    "harness.plugin.session",
    "harness.plugin.collection",
    "harness.plugin.recording",
    "harness.plugin.gating",
    "harness.plugin.resume",
    "harness.plugin.crashes",
    "harness.plugin.progress",
    "harness.plugin.fixtures",
    "harness.plugin.threads",
    "harness.plugin.slots",
    "harness.plugin.workers",
    "harness.plugin.notes",
    "harness.plugin.shards",
    "harness.plugin.durations",
    "harness.plugin.scheduler",
    "harness.plugin.signals",
)

__all__ = ["Case", "ModelChoice", "RunOptions", "cases"]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the modules that hold the hooks, in their order.

    Not by ``pytest_plugins``, which asks for assertions to be rewritten in modules that have been imported by then, and
    warns of it in every run of an installed distribution.
    """
    for name in _MODULES:
        if not pluginmanager.has_plugin(name):
            pluginmanager.register(import_module(name), name)
