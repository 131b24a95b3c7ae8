"""``--case-timeout SECONDS``: a case that hangs is ended and reported, and the run goes on.

First the case itself is told: a signal raises in it, it fails, and its process goes on with the next one. Where that is
not heard (native code that does not return), its process ends :data:`GRACE_S` later; where it is, :data:`HEARD_S`.
With ``-n`` that costs one worker, which is replaced; without workers it is the run, which first writes its end and its
page as far as it can. What the case has started is ended too (:mod:`left_behind`), :data:`GRACE_S` after the
case was told, since it may wait for that, and once more when it has been torn down.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import IO, Any

import pytest

from lm_audit.errors import StoreError
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.record.attempts import running_attempt
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.plugin.session import left_behind
from lm_audit.plugin.session.left_behind import Children, end_without_threads

GRACE_S = 3.0
"""How long a case may take to hear that its time is up."""

HEARD_S = 60.0
"""How long it may take to fail then: what it leaves is cleaned up and told, which lasts on a busy machine."""

LAST_S = 10.0
"""How much later a process without workers ends without a page, if not even a thread of its own could run."""

EXIT_CODE = 124
"""What a run without workers ends with whose case could not be stopped, as ``timeout`` does."""

CAUSE = "timeout"


class _Watch:
    """The clocks of the case that runs in this process."""

    def __init__(self, config: pytest.Config, limit: float):
        self.config, self.limit = config, limit
        self.item: pytest.Item | None = None
        self.inside = False
        """Whether pytest takes what is raised now as the case's own: between its phases that would end the run."""
        self.late = False
        """Whether the time was up between two phases."""
        self.told = False
        """Whether the case was told that its time is up."""
        self.children: Children | None = None
        """From the first fixture on that is the case's own."""
        self.ended: list[str] = []
        """Processes that the case left behind and that were ended."""
        self.lasting: dict[threading.Thread, bool] = {}
        """Threads that cases left, for which Python will wait, and whether the time of their case was up."""
        self.exit_code = 0
        """What the process will end with."""
        self._threads: set[threading.Thread] = set()
        self._helper: threading.Timer | None = None
        self._traces: IO[str] | None = None
        self._timer: threading.Timer | None = None
        self._before: Any = None

    def begin(self, item: pytest.Item) -> None:
        """The clocks run."""
        self.item, self.late, self.told = item, False, False
        self.children, self.ended, self._threads = None, [], set(threading.enumerate())
        self._end_process_in(self.limit + GRACE_S)
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGALRM, self._raise)
            signal.setitimer(signal.ITIMER_REAL, self.limit)

    def _end_process_in(self, seconds: float) -> None:
        if hasattr(self.config, "workerinput"):
            self._traces = self._traces or _open(
                traces_file(audit_session(self.config), audit_session(self.config).worker)
            )
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._traces or 2)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._give_up)
        self._timer.daemon = True
        self._timer.start()
        faulthandler.dump_traceback_later(seconds + LAST_S, exit=True, file=2)

    def end(self) -> None:
        """The clocks stop."""
        if self._helper is not None:
            self._helper.cancel()
            self._helper.join()
            self._helper = None
        new = set(threading.enumerate()) - self._threads
        self.lasting |= {one: self.told for one in new if not one.daemon}
        if self.told:
            self._clear_up()
        self.item, self.late = None, False
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._before = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        faulthandler.cancel_dump_traceback_later()

    def enter(self) -> None:
        """A phase of the case begins; raises where the time is up since the one before."""
        self.inside = True
        if self.late:
            self._raise()

    def enter_last(self) -> None:
        """The teardown begins: it must not be left out, and has a little time of its own where that of all is up."""
        self.inside = True
        if (self.late or self.told) and self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, GRACE_S if self.late else HEARD_S / 2)

    def leave(self) -> None:
        """A phase has ended."""
        self.inside = False

    def _raise(self, number: int = 0, frame: FrameType | None = None) -> None:
        if not self.inside:
            self.late = True
            return
        self.late = False
        running = running_attempt(self.item) if self.item is not None else None
        if running is not None:
            running.cause = CAUSE
        if not self.told:
            self.told = True
            self._end_process_in(HEARD_S)
            self._helper = threading.Timer(GRACE_S, self._end_children)
            self._helper.daemon = True
            self._helper.start()
        if self._before is not None:  # What cleans up after it may hang as well.
            signal.setitimer(signal.ITIMER_REAL, HEARD_S / 2)
        # No Exception, or a training loop that turns those into errors of its own would go on.
        raise pytest.fail.Exception(told(self.limit), pytrace=False)

    def _end_children(self) -> None:
        if self.children is not None:
            self.ended += self.children.end_new()

    def _clear_up(self) -> None:
        self._end_children()
        running = running_attempt(self.item) if self.item is not None else None
        if running is not None and self.ended:
            with contextlib.suppress(StoreError):
                running.writer.note(f"left behind when its time was up, and ended: {', '.join(self.ended)}")

    def _give_up(self) -> None:
        """Runs in a thread beside the one that hangs, in a run without workers."""
        if self.item is None:
            return
        from lm_audit.plugin.session.lifetime import close_run

        self._end_children()
        audit = audit_session(self.config)
        message = f"{told(self.limit)}, in native code that does not return"
        try:
            audit.ledger.write("case_end", case_id=self.item.nodeid, attempt=0, outcome="crashed", duration_s=None,
                               message=message, cause=CAUSE, by="controller", worker=audit.worker)  # fmt: skip
            close_run(audit, EXIT_CODE)
        except Exception as error:
            audit.extra["trouble"] = f"{type(error).__name__}: {error}"
        if capture := self.config.pluginmanager.get_plugin("capturemanager"):
            with contextlib.suppress(Exception):
                capture.suspend_global_capture()
        advice = f"the run ends here; go on, with a worker that can be replaced: --resume {audit.folder.run_id} -n 1"
        trouble = f"; {audit.extra['trouble']}" if "trouble" in audit.extra else ""
        print(f"\n{self.item.nodeid}: {message}; {advice}{trouble}", file=sys.__stderr__, flush=True)
        os._exit(EXIT_CODE)


def told(limit: float) -> str:
    """What is said of a case that hung."""
    return f"case timed out: it ran longer than --case-timeout {limit:g} s"


_WATCH: pytest.StashKey[_Watch] = pytest.StashKey()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Start the clocks: within pytest's own watch (``faulthandler_timeout``), of which there is one a process."""
    limit = item.config.getoption("lm_audit_case_timeout")
    if limit is not None and is_audit_case(item):
        if _WATCH not in item.config.stash:
            item.config.stash[_WATCH] = _Watch(item.config, limit)
        item.config.stash[_WATCH].begin(item)
        item.config.stash[_WATCH].enter()
    try:
        return (yield)
    finally:
        if _WATCH in item.config.stash:
            item.config.stash[_WATCH].leave()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> None:
    """What is wider than one case is set up before the first fixture of the case's own."""
    watch = request.config.stash.get(_WATCH, None)
    if watch is not None and watch.item is not None and watch.children is None and fixturedef.scope == "function":
        watch.children = Children()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """The test itself."""
    watch = item.config.stash.get(_WATCH, None)
    if watch is None or watch.item is None:
        return (yield)
    try:
        watch.children = watch.children or Children()
        watch.enter()
        return (yield)
    finally:
        watch.leave()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Stop them."""
    watch = item.config.stash.get(_WATCH, None)
    try:
        if watch is not None and watch.item is not None:
            watch.enter_last()
        return (yield)
    finally:
        if watch is not None:
            watch.leave()
            watch.end()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Threads that cases left may never end: the process does. What no case was waiting for has the time of one."""
    watch = config.stash.get(_WATCH, None)
    alive = [late for thread, late in watch.lasting.items() if thread.is_alive()] if watch is not None else []
    if watch is not None and alive:
        end_without_threads(watch.exit_code, left_behind.THREADS_S if all(alive) else watch.limit)


def traces_of(audit: AuditSession, worker: str) -> str | None:
    """Where a worker hung whose time was up, None for one that ended otherwise."""
    try:
        text = traces_file(audit, worker).read_text(encoding="utf-8", errors="replace").strip()
        traces_file(audit, worker).unlink()
    except OSError:
        return None
    return text or None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Know the exit code, which other hooks may still change."""
    yield
    if _WATCH in session.config.stash:
        session.config.stash[_WATCH].exit_code = int(session.exitstatus)


def pytest_lm_audit_loop_end(session: pytest.Session) -> None:
    """Remove what the workers left."""
    if not hasattr(session.config, "workerinput"):
        folder = traces_file(audit_session(session.config), "").parent
        with contextlib.suppress(OSError):
            for file in folder.glob("*.txt"):
                file.unlink(missing_ok=True)
            folder.rmdir()


def traces_file(audit: AuditSession, worker: str) -> Path:
    """Where a worker leaves the traces of a case whose time was up."""
    return audit.folder.path / "hangs" / f"{worker}.txt"


def _open(path: Path) -> IO[str] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError:
        return None
