"""What a run of the tests says of itself, and a port for all of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from lm_audit.plugin.parallel.threads import usable_cores
from tests.hypothesis_profile import load_profile
from tests.rewritten import rewrite_all
from tests.shared_data import ABSENT

load_profile()


def pytest_configure(config: pytest.Config) -> None:
    """Have what all workers import made once, before they start."""
    workers = getattr(config.option, "numprocesses", None)
    if isinstance(workers, int) and workers > 1 and not hasattr(config, "workerinput"):
        named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
        rewrite_all(config, [path for path in named if path.is_dir()], min(workers, usable_cores()))


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections: it is taken, so that nobody else can listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line on the tests that were not checked because their reference values are not here."""
    skipped = terminalreporter.stats.get("skipped", [])
    unchecked = sum(ABSENT in str(report.longrepr) for report in skipped)
    if unchecked:
        terminalreporter.write_line(
            f"{unchecked} tests were not checked against reference values: ../shared is absent, and {ABSENT}.",
            yellow=True,
        )
