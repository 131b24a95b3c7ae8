"""A plugin of the sessions of a cluster: half-way, cases stay where they are until a test lets them go."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

FOLDER, AFTER = "LM_AUDIT_TEST_HOLD", "LM_AUDIT_TEST_HOLD_AFTER"
RELEASED, HELD = "released", "held-"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Every case that begins after so many waits; the number of the process that waits names a file."""
    folder = Path(os.environ[FOLDER])
    with (folder / "begun").open("ab") as begun:
        begun.write(b".")
    if (folder / "begun").stat().st_size > int(os.environ[AFTER]):
        (folder / f"{HELD}{os.getpid()}").touch()
        while not (folder / RELEASED).exists():
            time.sleep(0.05)
    yield
