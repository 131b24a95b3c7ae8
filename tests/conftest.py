"""What a run of the tests says of itself."""

from __future__ import annotations

import pytest

from tests.hypothesis_profile import load_profile
from tests.shared_data import ABSENT

load_profile()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line on the tests that were not checked because their reference values are not here."""
    skipped = terminalreporter.stats.get("skipped", [])
    unchecked = sum(ABSENT in str(report.longrepr) for report in skipped)
    if unchecked:
        terminalreporter.write_line(
            f"{unchecked} tests were not checked against reference values: ../shared is absent, and {ABSENT}.",
            yellow=True,
        )
