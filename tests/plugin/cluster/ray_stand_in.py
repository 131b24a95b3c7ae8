"""A cluster without Ray, for ``pytest -p``: real actors and sessions, threads in the place of Ray's workers.

Ray takes some 20 s to start two nodes, which the tests that need it pay once (``test_ray_cluster.py``). Faults are read
from the environment:

``STAND_IN_LOSE=CASE:POINT`` takes away the node that runs the case first, with all that it runs, when the last that
comes of it is its start (``started``), the report of its call or teardown (``call``, ``teardown``), its end in the
ledger (``end``), or a message after these (``finished``, ``done``). With ``late`` the node is given up for lost when
the case starts, and what its session says of the case from then on comes while it runs elsewhere
(``STAND_IN_RELEASE`` is a file for which the case waits).

``STAND_IN_LATE=NODE:N`` lets a node join once N cases have ended. ``STAND_IN_ENV_NODE="A=1 B=2"`` is what a node has in
its environment. ``STAND_IN_GHOST=GONE:NODE`` is a node that is gone though the cluster has not noticed; once two actors
have died there another joins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from lm_audit.plugin.cluster import loop
from lm_audit.plugin.cluster.cluster import WorkerLost
from lm_audit.plugin.cluster.node.actor import SessionActor
from lm_audit.plugin.cluster.orders import Message, Order
from lm_audit.plugin.cluster.places import Kind, Node

RESOURCES = {"CPU": float(os.environ.get("STAND_IN_CPUS", "1")), "memory": 8.0 * (1 << 30)}


TOLD = ("started", "report", "finished", "done")
"""What a session says of a case."""


class Remote:
    """An actor in a thread of its own: calls are answered one after another."""

    def __init__(self, cluster: Cluster, node: str, working: Path) -> None:
        self.cluster, self.node = cluster, node
        self.actor = SessionActor(str(working))
        self.thread = ThreadPoolExecutor(1)
        self.gone = False

    def hello(self) -> Future[Any]:
        if self.node == os.environ.get("STAND_IN_GHOST", "").partition(":")[0]:
            self.gone = True
        return self._call(lambda: {"node": self.node, "pid": os.getpid()})

    def clock(self) -> Future[Any]:
        return self._call(self.actor.clock)

    def begin(self, order: Order) -> Future[Any]:
        own = dict(entry.split("=", 1) for entry in os.environ.get(f"STAND_IN_ENV_{self.node}", "").split())
        return self._call(lambda: self.actor.begin(replace(order, environment={**order.environment, **own})))

    def exchange(self, messages: list[Message], patience_s: float = 0.5) -> Future[Any]:
        return self._call(lambda: self._counted(self.actor.exchange(messages, patience_s)))

    def close(self) -> Future[Any]:
        return self._call(self.actor.close)

    def kill(self) -> None:
        self.gone = True
        self.actor.close()
        self.thread.shutdown(wait=False, cancel_futures=False)

    def _counted(self, events: list[Message]) -> list[Message]:
        if self.gone:
            raise WorkerLost("the node is gone")
        events = self.cluster.loss.passed(self, events)
        self.cluster.ended += sum(event[0] == "done" for event in events)
        return events

    def _call(self, work: Any) -> Future[Any]:
        if self.gone:
            failed: Future[Any] = Future()
            failed.set_exception(WorkerLost("the node is gone"))
            return failed
        return self.thread.submit(work)


class Loss:
    """The node that is lost, at one point of what its session says."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.case, _, self.point = os.environ.get("STAND_IN_LOSE", "").partition(":")
        self.lock = Lock()
        self.late: list[Message] = []

    def passed(self, remote: Remote, events: list[Message]) -> list[Message]:
        """What comes of what a session has said."""
        with self.lock:
            if self.late and any(event[0] == "started" and self.case in event[1] for event in events):
                events, self.late = [*events, *self.late], []
            found = next((index for index, event in enumerate(events) if self._there(event)), None)
            if not self.point or found is None:
                return events
            late, self.point = self.point == "late", ""
            if late:
                Path(os.environ["STAND_IN_RELEASE"]).touch()
                more = events[found:]
                while not self.late or self.late[-1][0] != "done":
                    self.late += [event for event in more if event[0] in TOLD and f"[{self.case}]" in event[1]]
                    more = remote.actor.exchange([], 0.5)
            self.cluster.alive.remove(remote.node)
            for other in self.cluster.remotes:
                if other.node == remote.node:
                    other.kill()
            return events[: found + 1]

    def _there(self, event: Message) -> bool:
        if self.point == "end":
            ends = b'"kind":"case_end"'
            lines = event[1][2].splitlines() if event[0] == "piece" and event[1][0].startswith("ledger/") else ()
            return any(ends in line and f"[{self.case}]".encode() in line for line in lines)
        if event[0] == "report":
            return f"[{self.case}]" in event[1] and event[3]["when"] == self.point
        kind = "started" if self.point == "late" else self.point
        return event[0] == kind and f"[{self.case}]" in event[1]


class Cluster:
    """Two nodes, ``n1`` and ``n2``; takes the place of ``lm_audit.plugin.cluster.cluster.Cluster``."""

    def __init__(self, address: str, working: Path, package: Path, timeout_s: float) -> None:
        self.working = working
        self.ended = 0
        self.alive = [name for name in os.environ.get("STAND_IN_NODES", "n1 n2").split()]
        self.remotes: list[Remote] = []
        self.loss = Loss(self)

    def nodes(self) -> list[Node]:
        self._join()
        return [Node(name, f"host-{name}", RESOURCES) for name in self.alive]

    def free(self) -> dict[str, float]:
        return dict(RESOURCES)

    def place(self, kind: Kind, node: str | None) -> Remote:
        assert node is not None
        self.remotes.append(Remote(self, node, self.working))
        return self.remotes[-1]

    def wait(self, answers: Iterable[Any], timeout_s: float) -> list[Any]:
        self.nodes()
        return list(wait(list(answers), timeout_s, FIRST_COMPLETED).done)

    def answer(self, reference: Any) -> Any:
        return reference.result()

    def close(self) -> None:
        for remote in self.remotes:
            remote.kill()

    def _join(self) -> None:
        node, _, count = os.environ.get("STAND_IN_LATE", "").partition(":")
        if node and self.ended >= int(count):
            del os.environ["STAND_IN_LATE"]
            self.alive.append(node)
        gone, _, node = os.environ.get("STAND_IN_GHOST", "").partition(":")
        if node and node not in self.alive and sum(remote.node == gone for remote in self.remotes) > 1:
            self.alive.append(node)


pytest.MonkeyPatch().setattr(loop, "Cluster", Cluster)
