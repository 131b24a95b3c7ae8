"""Loads the plugin for a checkout that was not installed, and the short names of its options (``--model``)."""

pytest_plugins = ("lm_audit.plugin", "lm_audit.plugin.short_options")
