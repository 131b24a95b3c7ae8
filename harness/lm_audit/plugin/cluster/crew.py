"""The crew: the workers of a run, asked for where there is room, heard in turn, and sent home."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from lm_audit.plugin.cluster.cluster import Cluster, WorkerLost
from lm_audit.plugin.cluster.kinds import Demand
from lm_audit.plugin.cluster.member import Member
from lm_audit.plugin.cluster.orders import Order
from lm_audit.plugin.cluster.places import Places
from lm_audit.plugin.parallel.affinity import AffinityQueue

GROW_EVERY_S = 1.0

CLOSE_S = 5.0
"""How long actors may take at the end of the run to remove what they have written on their nodes."""


class Heard(NamedTuple):
    """An answer of a worker: to which question (``hello``, ``begun``, ``news``), and what it says."""

    member: Member
    what: str
    content: Any
    """``WorkerLost`` where its actor is gone."""


class Crew:
    """Who works for a run, and who is asked to."""

    def __init__(
        self, cluster: Cluster, queue: AffinityQueue, places: Places, demands: Sequence[Demand], order: Order
    ) -> None:
        self._cluster, self._queue, self._places = cluster, queue, places
        self._demands, self._order = demands, order
        self._answers: dict[Any, tuple[Member, str]] = {}
        self._made = 0
        self._grown = 0.0
        self.members: list[Member] = []

    # ---- workers come

    def grow(self) -> None:
        """Ask for workers where there is room and the queue has something for them."""
        now = time.monotonic()
        if now - self._grown < GROW_EVERY_S:
            return
        self._grown = now
        if not self._queue.queued:
            return
        self._places.seen(self._cluster.nodes())
        for demand in self._demands:
            coming = sum(not member.ready for member in self.members if member.demand is demand)
            while coming < self._queue.queued and self._may_grow(demand):
                node = self._places.next(demand.kind)
                if node is None:
                    break
                self._ask(demand, node)
                coming += 1
            # Without a node that has room a request is still made: a cluster that scales sees it and grows.
            if not coming and self._wanted_somewhere(demand) and not self._has_member(demand):
                self._ask(demand, None)

    def _may_grow(self, demand: Demand) -> bool:
        return self._queue.wants(refuses=demand.refuses | self._places.missing_everywhere(), modelless=demand.modelless)

    def _wanted_somewhere(self, demand: Demand) -> bool:
        return not self._good_nodes(demand) and self._may_grow(demand)

    def _has_member(self, demand: Demand) -> bool:
        return any(member.demand is demand for member in self.members)

    def _good_nodes(self, demand: Demand) -> list[str]:
        nodes = self._places.nodes.values()
        return [node.id for node in nodes if node.id not in self._places.bad and node.slots(demand.kind)]

    def _ask(self, demand: Demand, node: str | None) -> None:
        member = Member(f"ray{self._made}", demand, self._cluster.place(demand.kind, node), node, time.monotonic())
        self._made += 1
        self.members.append(member)
        if node is not None:
            self._places.took(member.name, node, demand.kind)
        self._expect(member, member.remote.hello(), "hello")

    def arrived(self, member: Member, node: str) -> None:
        """The actor has a process: measure its clock, and have it start the session."""
        member.placed = True
        if member.node is None:
            member.node = node
            self._places.took(member.name, node, member.demand.kind)
            self._places.seen(self._cluster.nodes())
        if node in self._places.bad or not self._queue.queued:
            self.dismiss(member)
            return
        order = replace(
            self._order,
            worker=member.name,
            clock=self._clock(member),
            workers_of_node=self._places.share(node, member.demand.kind),
        )
        member.since = time.monotonic()
        self._expect(member, member.remote.begin(order), "begun")

    def _clock(self, member: Member) -> float:
        """This machine's monotonic clock less the node's, by the fastest of three questions.

        The time at which the question was sent stands for the time at which the node read its clock. So a node's
        records are dated never later than they were, and what the controller does because of them comes after them.
        """
        found: list[tuple[float, float]] = []
        for _ in range(3):
            asked = time.monotonic()
            reference = member.remote.clock()
            if not self._cluster.wait([reference], 10.0):
                break
            with suppress(WorkerLost):
                there = self._cluster.answer(reference)
                found.append((time.monotonic() - asked, asked - there))
        return min(found, default=(0.0, 0.0))[1]

    # ---- what they say

    def exchange(self, member: Member) -> None:
        """Send a worker what is ready for it, and ask for its news."""
        outbox, member.outbox = member.outbox, []
        self._expect(member, member.remote.exchange(outbox), "news")

    def hear(self, timeout_s: float) -> Iterator[Heard]:
        """The answers that have come, as soon as there is one; what comes from no member any more is dropped."""
        for reference in self._cluster.wait(self._answers, timeout_s):
            member, what = self._answers.pop(reference)
            if what == "closed":
                member.remote.kill()
            if member not in self.members:
                continue
            try:
                yield Heard(member, what, self._cluster.answer(reference))
            except WorkerLost as error:
                yield Heard(member, what, error)

    def _expect(self, member: Member, answer: object, what: str) -> None:
        self._answers[answer] = (member, what)

    # ---- workers go

    def dismiss(self, member: Member) -> None:
        """Send a worker home."""
        if member in self._queue.nodes:
            self._queue.lost(member, started=False)
        self.forget(member)

    def forget(self, member: Member) -> None:
        """It is no member any more: its actor ends once it has removed what it wrote on its node."""
        if member not in self.members:
            return
        self.members.remove(member)
        self._places.left(member.name)
        if member.placed:
            self._expect(member, member.remote.close(), "closed")
        else:
            member.remote.kill()

    def go(self) -> None:
        """Send all workers home, and wait until they have removed what they wrote."""
        for member in list(self.members):
            self.dismiss(member)
        deadline = time.monotonic() + CLOSE_S
        closing = {reference: member for reference, (member, what) in self._answers.items() if what == "closed"}
        while closing and time.monotonic() < deadline:
            for reference in self._cluster.wait(closing, max(0.0, deadline - time.monotonic())):
                closing.pop(reference).remote.kill()
        for member in closing.values():
            member.remote.kill()

    # ---- the crew as a whole

    @property
    def working(self) -> bool:
        """Whether any worker takes cases."""
        return any(member.ready for member in self.members)

    @property
    def hopeless(self) -> bool:
        """Whether no node can have a worker any more."""
        return self._places.hopeless(demand.kind for demand in self._demands)

    def free(self) -> Mapping[str, float]:
        """What of the cluster's resources nobody has taken."""
        return self._cluster.free()

    def wanted(self) -> str:
        """What a worker needs, in words."""
        return " or ".join(str(demand.kind) for demand in self._demands)
