"""The process of one worker: a pytest session that runs the cases it is sent, as long as it is sent any.

Started as ``python -m lm_audit.plugin.cluster.node.session_process DESCRIPTOR`` by its actor; knows nothing of Ray.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from lm_audit.plugin.cluster.orders import Message, Order, Ready, compared_versions
from lm_audit.plugin.compat import place_for_reruns
from lm_audit.plugin.record.audit_session import audit_session
from lm_audit.shared import code_version

_PR_SET_PDEATHSIG = 1


class Pause(pytest.Item):
    """Stands for a next case that is not known yet: what belongs to the session stays, modules are torn down."""

    def runtest(self) -> None:
        """Never called."""


class FedSession:
    """The plugin that feeds the session, and tells what happens in it."""

    def __init__(self, order: Order, root: Path, connection: Connection):
        self._order = order
        self._root = root
        self._connection = connection
        self._sending = threading.Lock()
        self._orders: queue.Queue[Message] = queue.Queue()
        self._items: dict[str, pytest.Item] = {}
        self._troubles: list[str] = []
        self._attempt: tuple[str, int] = ("", 0)
        """The case that runs and the number of the attempt, as it was given."""

    # ---- joining the run

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Before anything is configured: this session works for a controller."""
        options = config.option
        for name, value in self._order.options.items():
            if hasattr(options, name):
                setattr(options, name, value)
        vars(config)["workerinput"] = {
            "workerid": self._order.worker,
            "workercount": self._order.workers_of_node,
            "testrunuid": self._order.run_id,
            "mainargv": list(sys.argv),
            "lm_audit": dict(self._order.session) | {"clock": self._order.clock},
            **place_for_reruns(config),
        }
        vars(config)["workeroutput"] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected here."""
        if report.failed:
            self._troubles.append(f"{report.nodeid or 'collection'}: {report.longrepr}")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Tell what broke outside of any case."""
        self._say("failed", str(excrepr))

    # ---- running what is sent

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Say what there is, then run case by case until the end is sent."""
        if self._troubles:
            self._say("failed", "\n".join(self._troubles))
            return True
        self._items = {item.nodeid: item for item in session.items}
        self._say("ready", Ready(self._missing(), code_version.package_digest(), compared_versions()))
        threading.Thread(target=self._receive, name="lm-audit-orders", daemon=True).start()
        pause = Pause.from_parent(session, name="pause")
        order = self._orders.get()
        while order[0] != "end":
            following = self._orders.get() if order[0] == "run" else ("alone",)
            if order[0] == "run":
                self._run(session, order, self._next(following, pause))
            order = following if following[0] != "alone" else self._orders.get()
        return True

    def _next(self, following: Message, pause: pytest.Item) -> pytest.Item | None:
        if following[0] == "run":
            return self._items.get(following[1], pause)
        return pause if following[0] == "alone" else None

    def _run(self, session: pytest.Session, order: Message, following: pytest.Item | None) -> None:
        _, case, attempt, fingerprint = order
        item = self._items.get(case)
        if item is None:
            self._say("unknown", case, attempt)
            return
        audit = audit_session(session.config)
        audit.attempts[case] = attempt - 1
        if fingerprint:
            audit.given_fingerprints[case] = fingerprint
        self._attempt = (case, attempt)
        began = time.perf_counter()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        # Whether to stop is the controller's to say, which sees the failures of all workers.
        session.shouldfail = session.shouldstop = False
        self._say("done", case, attempt, time.perf_counter() - began)

    def _receive(self) -> None:
        try:
            while True:
                self._orders.put(self._connection.recv())
        except (EOFError, OSError):  # The actor is gone, and with it everybody who could want a result.
            os._exit(1)

    def _missing(self) -> dict[str, str]:
        from lm_audit.models.files.presence import absence

        told = {spec: absence(spec) for spec in set(self._order.models.values())}
        return {group: str(told[spec]) for group, spec in self._order.models.items() if told[spec]}

    # ---- telling

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """A case begins."""
        self._say("started", *self._attempt, location)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """A case is over."""
        self._say("finished", *self._attempt, location)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a case is over."""
        config = self._config
        self._say("report", *self._attempt, config.hook.pytest_report_to_serializable(config=config, report=report))

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the configuration, by which reports are made plain."""
        self._config = config

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """A warning was given; those of the configuration the controller has had itself."""
        if when == "config":
            return
        told = warning_message
        try:
            pickle.dumps(told)
        except Exception:
            told = warnings.WarningMessage(
                str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
            )
        self._say("warning", told, when, nodeid, location)

    def _say(self, *message: object) -> None:
        with self._sending:
            self._connection.send(message)


def arguments(order: Order, root: Path) -> list[str]:
    """The caller's arguments, for a copy of the rootdir that lies at ``root``."""
    words = [_moved(word, order, root) for word in order.arguments]
    words += [f"--rootdir={root}"]
    return words if order.ini is None else [*words, "-c", str(root / order.ini)]


def _moved(word: str, order: Order, root: Path) -> str:
    head, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
    if path == order.root or path.startswith(f"{order.root}/"):
        return f"{head}{equals}{root}{path[len(order.root) :]}"
    return word


def moved_options(order: Order, root: Path) -> dict[str, Any]:
    """The options that are set, with what they name where it lies now."""
    return {name: _relocated(value, order.named, root) for name, value in order.options.items()}


def _relocated(value: object, named: Mapping[str, str], root: Path) -> Any:
    if isinstance(value, str):
        whole = _relocated_part(value, named, root)
        return whole if whole != value else ",".join(_relocated_part(part, named, root) for part in value.split(","))
    if isinstance(value, list | tuple):
        return type(value)(_relocated(entry, named, root) for entry in value)
    return value


def _relocated_part(text: str, named: Mapping[str, str], root: Path) -> str:
    if text in named:
        return str(root / named[text])
    head, equals, path = text.partition("=")
    return f"{head}{equals}{root / named[path]}" if path in named else text


def _die_with_the_actor() -> None:
    """On Linux the system ends this process with its parent, even while it hangs in native code."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(descriptor: int) -> int:
    """Run the session whose order comes first on the connection; pytest's exit code."""
    _die_with_the_actor()
    connection = Connection(descriptor)
    order: Order = connection.recv()
    root = Path.cwd()
    folder = root / order.folder
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ["PYTEST_XDIST_WORKER"] = order.worker
    fed = FedSession(replace(order, options=moved_options(order, root)), root, connection)
    code = pytest.main(arguments(order, root), plugins=[fed])
    with contextlib.suppress(OSError):
        connection.send(("bye",) if code in (0, 1, 5) else ("failed", f"pytest ended with exit code {int(code)}"))
    connection.close()
    return int(code)


def entry(words: Iterable[str]) -> int:
    """``DESCRIPTOR``."""
    (descriptor,) = words
    return main(int(descriptor))


if __name__ == "__main__":
    sys.exit(entry(sys.argv[1:]))
