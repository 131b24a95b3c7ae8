"""``--model`` for ``--lm-audit-model``, and so on, for a conftest that lists this module as a plugin."""

from __future__ import annotations

import pytest

from lm_audit.plugin.options.hints import prepare_refusal
from lm_audit.plugin.options.naming import add_short_names


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the short names, after the plugin itself has declared its options."""
    if not pluginmanager.has_plugin("lm_audit.plugin"):
        pluginmanager.import_plugin("lm_audit.plugin")
    add_short_names(parser)
    config = pluginmanager.get_plugin("pytestconfig")
    if isinstance(config, pytest.Config):  # A conftest that brings the plugin comes too late for its hook.
        prepare_refusal(config, config.invocation_params.args)
