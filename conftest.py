"""Loads the plugin for a checkout that was not installed, and the short names of its options (``--model``)."""

import gc
import os

from lm_audit.plugin.parallel.threads import thread_settings, usable_cores

pytest_plugins = ("lm_audit.plugin", "lm_audit.plugin.short_options")

# The tests share the machine as the audits do, also where none of them is an audit case and the plugin stays asleep.
os.environ.update(thread_settings(os.environ, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), usable_cores()))


def pytest_collection_finish() -> None:
    """What thousands of modules and tests hold stays until the end: the garbage collector looks through it no more."""
    gc.collect()
    gc.freeze()
