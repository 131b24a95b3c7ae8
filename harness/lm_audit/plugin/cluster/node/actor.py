"""The Ray actor: starts one pytest session as a process of its own, and passes on what it says and writes.

The session is a process, so that a case that crashes leaves somebody to tell of it, with all that it had written.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lm_audit
from lm_audit.plugin.cluster.node.mirror import Mirror
from lm_audit.plugin.cluster.node.scratch import Scratch
from lm_audit.plugin.cluster.orders import Message, Order
from lm_audit.plugin.parallel.threads import THREAD_VARIABLES

LOOK_EVERY_S = 0.2
"""How often what a session writes is passed on while it says nothing."""

LINGER_S = 0.1
"""How long an answer is held back for what may still come, unless it says something that the controller acts on."""

ACTED_ON = frozenset({"ready", "done", "unknown", "failed", "bye", "died"})

BATCH = 16 << 20
"""Bytes of pieces in one answer at most."""

_TAIL = 4000


class SessionActor:
    """One worker of a run. Its methods are called one after another."""

    def __init__(self, root: str | None = None) -> None:
        """``root`` is where the parcel lies, None for the working folder, as Ray has it."""
        self._root = root
        self._events: queue.Queue[Message] = queue.Queue()
        self._scratch = Scratch()
        self._connection: Connection | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def hello(self) -> Mapping[str, Any]:
        """Where the actor is."""
        import ray

        context = ray.get_runtime_context()
        return {"node": context.get_node_id(), "pid": os.getpid()}

    def clock(self) -> float:
        """The node's monotonic clock."""
        return time.monotonic()

    def begin(self, order: Order) -> None:
        """Start the session."""
        folder = self._scratch.path / order.run_id
        (folder / "progress" if order.progress else folder).mkdir(parents=True)
        order = replace(order, session={**order.session, "folder": str(folder)})
        ours, theirs = Pipe()
        self._connection = ours
        ours.send(order)
        started = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(order, theirs, started), name="lm-audit-keeper", daemon=True)
        keeper.start()
        started.wait(60)

    def exchange(self, messages: list[Message], patience_s: float) -> list[Message]:
        """Pass messages on; what the session said and wrote since, at the latest after ``patience_s``."""
        for message in messages:
            with contextlib.suppress(OSError):  # It died: its end is among the events.
                if self._connection is not None:
                    self._connection.send(message)
        return list(self._said(patience_s))

    def _said(self, patience_s: float) -> Iterator[Message]:
        size, until = 0, time.monotonic() + patience_s
        with contextlib.suppress(queue.Empty):
            while size < BATCH:
                message = self._events.get(timeout=max(0.0, until - time.monotonic()))
                yield message
                size += len(message[1][2]) if message[0] == "piece" else 0
                linger = 0.0 if message[0] in ACTED_ON else LINGER_S
                until = min(until, time.monotonic() + linger)

    def close(self) -> None:
        """End the session's process, and remove what it wrote here."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()  # What it still writes would stay behind.
        self._scratch.remove()

    def _keep(self, order: Order, theirs: Connection, started: threading.Event) -> None:
        # A child may be told of the death of the thread that started it: this one lives as long as it does.
        output = self._scratch.path / "output.txt"
        mirror = Mirror(Path(order.session["folder"]))
        try:
            with output.open("wb") as handle:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "lm_audit.plugin.cluster.node.session_process", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=handle,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(),),
                    env=session_environment(os.environ, order),
                    cwd=self._root,
                )
        except OSError as error:
            self._events.put(("died", f"its process did not start: {error}"))
            return
        finally:
            theirs.close()
            started.set()
        last = self._listen(mirror)
        code = self._process.wait()
        self._pass_on(mirror)
        if last != "bye":
            self._events.put(("died", _how(code, output)))

    def _listen(self, mirror: Mirror) -> str:
        assert self._connection is not None
        last, looked = "", time.monotonic()
        while True:
            try:
                message = self._connection.recv() if self._connection.poll(LOOK_EVERY_S) else None
            except (EOFError, OSError):
                return last
            # What a case has written is there before its last report; to look at every message would cost more.
            if message is None or _closes(message) or time.monotonic() - looked > LOOK_EVERY_S:
                self._pass_on(mirror)
                looked = time.monotonic()
            if message is not None:
                last = message[0]
                self._events.put(message)

    def _pass_on(self, mirror: Mirror) -> None:
        for piece in mirror.news():
            self._events.put(("piece", piece))


def _closes(message: Message) -> bool:
    """Whether a session has just written what the controller must have before it hears the message."""
    return message[0] in ACTED_ON - {"done"} or (message[0] == "report" and message[3].get("when") == "teardown")


def session_environment(own: Mapping[str, str], order: Order) -> dict[str, str]:
    """The actor's environment, without what the pytest above it may have left there.

    How many threads compute is the run's to say: with other numbers on two nodes their last digits would differ.
    """
    left_out = ("PYTEST", "COV_", "PYTHONBREAKPOINT", *THREAD_VARIABLES)
    kept = {name: value for name, value in own.items() if not name.startswith(left_out)}
    package = str(Path(lm_audit.__file__).resolve().parents[1])
    places = [package, *(place for place in own.get("PYTHONPATH", "").split(os.pathsep) if place)]
    return kept | dict(order.environment) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(places))}


def _how(code: int, output: Path) -> str:
    """How a process ended: its exit code or signal, and the end of what it printed."""
    try:
        text = output.read_bytes()[-_TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{ended}\n{text}" if text else ended
