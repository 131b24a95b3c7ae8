"""One process writes a run at a time."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.runstore.holding import hold
from lm_audit.runstore.layout import RunFolder


def test_a_run_is_held_by_one_and_free_again(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "20260101-000000-0000")
    run.create()
    release = hold(run)
    with pytest.raises(UsageError, match="20260101-000000-0000 is being written by another process"):
        hold(run)
    release()
    hold(run)()
    assert not list(run.ledger.iterdir())


def test_a_folder_that_is_not_there_is_not_held(tmp_path: Path) -> None:
    hold(RunFolder(tmp_path / "absent"))()


def test_a_forked_process_that_outlives_its_holder_holds_nothing(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "20260101-000000-0000")
    run.create()
    release = hold(run)
    ready, told = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # From 3.12 on where this process has threads.
        child = os.fork()
    if not child:
        os.write(told, b".")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(ready, 1)
        with pytest.raises(UsageError, match="is being written by another process"):
            hold(run)
        release()
        hold(run)()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(told)
