"""Progress of long cases: what runs, items done of all, tokens a second, time left.

Shown on a terminal only, on a line of its own that vanishes before pytest writes; never under ``-q`` or in CI.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.selection import is_audit_case
from harness.plugin.state import AuditSession, audit_session

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_S = 1.5
"""A case that is done sooner is not shown."""

_WRITE_EVERY_S = 0.5


@dataclass
class CaseProgress:
    """How far the running case of one process is; ``tokens`` and ``since`` belong to the current call of the model."""

    case: str = ""
    began: float = 0.0
    done: int = 0
    total: int = 0
    tokens: int = 0
    since: float = 0.0

    def start(self, case: str) -> None:
        """A case begins."""
        self.case, self.began, self.done, self.total, self.tokens = case, time.time(), 0, 0, 0

    def update(self, done: int, total: int, tokens: int = 0) -> None:
        """Items done of all and tokens so far; fewer items than before mean that a new call began."""
        if total != self.total or done < self.done:
            self.since = time.time()
        self.done, self.total, self.tokens = done, total, tokens

    def rate(self, now: float) -> float | None:
        """Tokens a second of the current call, None before there are any."""
        return self.tokens / (now - self.since) if self.tokens and now > self.since else None


class Reporter:
    """Keeps this process's progress, and leaves it in a file where a controller can see it."""

    def __init__(self, file: Path | None = None):
        self.now = CaseProgress()
        self._file = file
        self._written = 0.0

    def start(self, case: str) -> None:
        """A case begins."""
        self.now.start(case)
        self._leave(force=True)

    def update(self, done: int, total: int, tokens: int = 0) -> None:
        """Called by the model's engine and by audits while they work."""
        self.now.update(done, total, tokens)
        self._leave(force=False)

    def stop(self) -> None:
        """The case is over."""
        self.now.start("")
        self._leave(force=True)

    def _leave(self, *, force: bool) -> None:
        if self._file is None or (not force and time.monotonic() - self._written < _WRITE_EVERY_S):
            return
        self._written = time.monotonic()
        draft = self._file.with_suffix(".tmp")
        try:
            draft.write_text(json.dumps(asdict(self.now)), encoding="utf-8")
            draft.replace(self._file)
        except OSError:
            self._file = None  # A disk that is full is the ledger's to tell.


class Display:
    """Draws the running cases from a thread of its own, while nothing else writes to the terminal."""

    def __init__(self, read: Callable[[], Mapping[str, CaseProgress]], column: Callable[[], int], descriptor: int):
        from rich.console import Console

        self._read = read
        self._column = column
        self._file = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file, force_terminal=True)
        self._lock = threading.RLock()
        self._shown: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._from = 0
        self._quiet_until = time.monotonic() + QUIET_S
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="lm-audit-progress", daemon=True)
        self._thread.start()

    def clear(self) -> None:
        """Take the lines away, because pytest is about to write."""
        with self._lock:
            self._quiet_until = time.monotonic() + QUIET_S
            if self._shown is not None:
                self._shown.stop()
                self._shown = None
                self._tasks = {}
                if self._from:  # Back to where pytest left its line.
                    self._file.write(f"\x1b[1A\x1b[{self._from + 1}G")
                    self._file.flush()

    def close(self) -> None:
        """Stop drawing."""
        self._end.set()
        self._thread.join(timeout=2)
        self.clear()
        self._file.close()

    def _loop(self) -> None:
        while not self._end.wait(0.25):
            with self._lock:
                if time.monotonic() >= self._quiet_until and not self._end.is_set():
                    self._draw()

    def _draw(self) -> None:
        running = {name: state for name, state in self._read().items() if state.case}
        if not running:
            return
        if self._shown is None:
            self._open()
        assert self._shown is not None
        for name, state in running.items():
            if name not in self._tasks:
                self._tasks[name] = self._shown.add_task("", total=None, rate="")
            rate = state.rate(time.time())
            self._shown.update(
                self._tasks[name],
                description=short_id(state.case),
                completed=state.done,
                total=state.total or None,
                rate=f"{rate:,.0f} tokens/s" if rate else "",
            )
        self._shown.refresh()

    def _open(self) -> None:
        from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._from = self._column()
        if self._from:
            self._file.write("\n")
            self._file.flush()
        self._shown = Progress(
            TextColumn("{task.description}", markup=False),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._shown.start()


def short_id(case_id: str) -> str:
    """The part of a case id that tells cases apart, without the path."""
    name = case_id.rpartition("::")[2] if "[" not in case_id else case_id.partition("[")[0].rpartition("::")[2]
    inner = f"[{case_id.partition('[')[2]}" if "[" in case_id else ""
    text = name + inner
    return text if len(text) <= 60 else f"{text[:59]}…"


REPORTER: pytest.StashKey[Reporter] = pytest.StashKey()
_DISPLAY: pytest.StashKey[Display] = pytest.StashKey()


def wanted(config: pytest.Config) -> bool:
    """Whether progress is shown: on a terminal, not under ``-q``, not in CI."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return terminal and config.option.verbose >= 0 and not os.environ.get("CI") and not config.option.collectonly


def _folder(audit: AuditSession) -> Path:
    return audit.folder.path / "progress"


def pytest_configure(config: pytest.Config) -> None:
    """Keep progress in every process; a worker leaves it in a file."""
    file = _folder(audit_session(config)) / f"{audit_session(config).worker}.json"
    config.stash[REPORTER] = Reporter(file if hasattr(config, "workerinput") else None)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Any:
    """Show progress while cases run, in the process that owns the terminal."""
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or terminal is None or not wanted(config):
        return (yield)
    audit = audit_session(config)
    if config.pluginmanager.hasplugin("dsession"):
        _folder(audit).mkdir(parents=True, exist_ok=True) if audit.problem is None else None
    display = Display(lambda: _states(config), lambda: int(terminal._tw.width_of_current_line), sys.stdout.fileno())
    config.stash[_DISPLAY] = display
    try:
        return (yield)
    finally:
        del config.stash[_DISPLAY]
        display.close()
        _tidy(_folder(audit))


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


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch for what pytest writes."""
    session.config.pluginmanager.register(_Clearing(session.config), "lm-audit-progress-clearing")


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
