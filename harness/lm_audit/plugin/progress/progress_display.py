"""Draws the progress of running cases on a terminal that pytest writes to as well."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, cast

from lm_audit.plugin.progress.case_progress import CaseProgress
from lm_audit.plugin.session.lost_output import LostOutput
from lm_audit.shared.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_S = 1.5
"""A case that is done sooner is not shown."""


class Display:
    """Draws the running cases from a thread of its own, while nothing else writes to the terminal."""

    def __init__(self, read: Callable[[], Mapping[str, CaseProgress]], column: Callable[[], int], descriptor: int):
        from rich.console import Console

        self._read = read
        self._column = column
        self._file = LostOutput(os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace"))
        self._console = Console(file=cast(IO[str], self._file), force_terminal=True)
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
            self._shown.update(
                self._tasks[name],
                description=visible(short_id(state.case)),
                completed=state.done,
                total=state.total or None,
                rate=state.speed(time.time()),
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
