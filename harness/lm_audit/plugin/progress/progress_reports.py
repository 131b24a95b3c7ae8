"""Progress of long cases: what runs, items done of all, tokens or requests a second, time left.

Shown on a terminal only, on a line of its own that vanishes before pytest writes; never under ``-q`` or in CI.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.cluster.options import on_ray
from lm_audit.plugin.compat import cursor_column, verbosity
from lm_audit.plugin.progress.case_progress import CaseProgress, Reporter
from lm_audit.plugin.progress.progress_display import Display
from lm_audit.plugin.record.audit_session import AuditSession, audit_session

REPORTER: pytest.StashKey[Reporter] = pytest.StashKey()
_DISPLAY: pytest.StashKey[Display] = pytest.StashKey()


def wanted(config: pytest.Config) -> bool:
    """Whether progress is shown: on a terminal, not under ``-q``, not in CI."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return terminal and verbosity(config) >= 0 and not os.environ.get("CI") and not config.option.collectonly


def _folder(audit: AuditSession) -> Path:
    return audit.folder.path / "progress"


def pytest_configure(config: pytest.Config) -> None:
    """Keep progress in every process; a worker leaves it in a file."""
    file = _folder(audit_session(config)) / f"{audit_session(config).worker}.json"
    config.stash[REPORTER] = Reporter(file if hasattr(config, "workerinput") else None)
    config.pluginmanager.register(_Clearing(config), "lm-audit-progress-clearing")


def pytest_lm_audit_loop_begin(session: pytest.Session) -> None:
    """Show progress while cases run, in the process that owns the terminal."""
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or terminal is None or not wanted(config):
        return
    audit = audit_session(config)
    if config.pluginmanager.hasplugin("dsession") or on_ray(config):
        _folder(audit).mkdir(parents=True, exist_ok=True) if audit.problem is None else None
    display = Display(lambda: _states(config), lambda: cursor_column(terminal), sys.stdout.fileno())
    config.stash[_DISPLAY] = display


def pytest_lm_audit_loop_end(session: pytest.Session) -> None:
    """Take the display away."""
    display = session.config.stash.get(_DISPLAY, None)
    if display is not None:
        del session.config.stash[_DISPLAY]
        display.close()
        _tidy(_folder(audit_session(session.config)))


def _states(config: pytest.Config) -> Mapping[str, CaseProgress]:
    own = config.stash[REPORTER].now
    found = {"": own} if own.case else {}
    for file in sorted(_folder(audit_session(config)).glob("*.json")):
        try:
            found[file.stem] = CaseProgress(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
    return found


def _tidy(folder: Path) -> None:
    for file in folder.glob("*"):
        file.unlink(missing_ok=True)
    if folder.is_dir():
        folder.rmdir()


def _clear(config: pytest.Config) -> None:
    display = config.stash.get(_DISPLAY, None)
    if display is not None:
        display.clear()


class _Clearing:
    """Takes the lines away before pytest writes."""

    def __init__(self, config: pytest.Config):
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """A line may begin."""
        _clear(self._config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        """A letter or a word is written."""
        _clear(self._config)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Tell which case runs."""
    reporter = item.config.stash[REPORTER]
    if not is_audit_case(item):
        return (yield)
    reporter.start(item.nodeid)
    try:
        return (yield)
    finally:
        reporter.stop()
