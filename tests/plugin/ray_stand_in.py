"""A cluster without Ray, for ``pytest -p``: real actors and sessions, threads in the place of Ray's workers.

Ray takes some 20 s to start two nodes, which the tests that need it pay once (``test_ray_cluster.py``). Faults are read
from the environment: ``STAND_IN_LOSE=N`` takes a node away that runs a case once N cases have ended, with all that it
runs, and ``STAND_IN_LATE=NODE:N`` lets one join then. ``STAND_IN_ENV_NODE="A=1 B=2"`` is what a
node has in its environment. ``STAND_IN_GHOST=GONE:NODE`` is a node that is gone though the cluster has not noticed;
once two actors have died there another joins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_audit.plugin.cluster import loop
from lm_audit.plugin.cluster.actor import SessionActor
from lm_audit.plugin.cluster.cluster import WorkerLost
from lm_audit.plugin.cluster.orders import Message, Order
from lm_audit.plugin.cluster.places import Kind, Node

RESOURCES = {"CPU": float(os.environ.get("STAND_IN_CPUS", "1")), "memory": 8.0 * (1 << 30)}


class Remote:
    """An actor in a thread of its own: calls are answered one after another."""

    def __init__(self, cluster: Cluster, node: str, working: Path) -> None:
        self.cluster, self.node = cluster, node
        self.actor = SessionActor(str(working))
        self.thread = ThreadPoolExecutor(1)
        self.gone = self.running = False

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
        for event in events:
            self.cluster.ended += event[0] == "done"
            self.running = event[0] == "started" or (self.running and event[0] != "done")
        return events

    def _call(self, work: Any) -> Future[Any]:
        if self.gone:
            failed: Future[Any] = Future()
            failed.set_exception(WorkerLost("the node is gone"))
            return failed
        return self.thread.submit(work)


class Cluster:
    """Two nodes, ``n1`` and ``n2``; takes the place of ``lm_audit.plugin.cluster.cluster.Cluster``."""

    def __init__(self, address: str, working: Path, package: Path, timeout_s: float) -> None:
        self.working = working
        self.ended = 0
        self.alive = [name for name in os.environ.get("STAND_IN_NODES", "n1 n2").split()]
        self.remotes: list[Remote] = []

    def nodes(self) -> list[Node]:
        self._lose()
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

    def _lose(self) -> None:
        count = os.environ.get("STAND_IN_LOSE")
        running = [remote.node for remote in self.remotes if remote.running and not remote.gone]
        if count is None or self.ended < int(count) or not running:
            return
        del os.environ["STAND_IN_LOSE"]
        self.alive.remove(running[-1])
        for remote in self.remotes:
            if remote.node == running[-1]:
                remote.kill()


loop.Cluster = Cluster  # type: ignore[assignment, misc]
