"""Under ``-v`` each case's findings are told as it ends, before they are corrected for the number of all findings.

So is what it asked of a server: requests, requests a second, tokens.
"""

from __future__ import annotations

import json

import pytest

from lm_audit.plugin.compat import verbosity
from lm_audit.plugin.models.endpoints import TRAFFIC_PROPERTY
from lm_audit.plugin.record.attempts import FINDINGS_PROPERTY
from lm_audit.shared.visible import visible

SIGNS = {"found": "!", "cannot tell": "?", "not found": "\u2713"}
STYLES = {"found": {"red": True}, "cannot tell": {"yellow": True}, "not found": {"green": True}}


def pytest_configure(config: pytest.Config) -> None:
    """Tell only where somebody asked to hear more, in the process that owns the terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and verbosity(config) > 0 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Telling(terminal), "lm-audit-telling")


class _Telling:
    def __init__(self, terminal: pytest.TerminalReporter):
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the findings and the traffic below the line of their case."""
        for name, value in report.user_properties:
            if name == TRAFFIC_PROPERTY and report.when == "teardown":
                self._terminal.ensure_newline()
                self._terminal.write_line(f"    {visible(str(value))}")
            if name == FINDINGS_PROPERTY and report.when == "call":
                self._terminal.ensure_newline()
                for verdict, statement in json.loads(str(value)):
                    text = visible(" ".join(statement.split()))
                    self._terminal.write_line(f"    {SIGNS[verdict]} {verdict}: {text}", **STYLES[verdict])
