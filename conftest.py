"""Loads the plugin for a checkout that was not installed; an installed distribution registers it by entry point."""

pytest_plugins = ("lm_audit.plugin",)
