"""Which case a worker runs next: model affinity, longest work first, and a crash that costs one case.

No pytest and no xdist here. A transport (xdist today) calls ``add_node``, ``take``, ``done`` and ``lost``; nodes are
any hashable values.

The policy, in order, when a node asks for work:

1. a case of the model that it holds;
2. the model with most work among those that no node holds;
3. a case without a model, the longest first;
4. a share of a model that others hold, where what is left to each of them costs more than one more load;
5. nothing: the node may go home.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from lm_audit.plugin.costs import CostModel

DEFAULT_MAX_CRASHES = 3
"""After so many crashes of one model the rest of its cases is not run."""


@dataclass(frozen=True)
class Work:
    """One case: the transport's handle for it, its id, and what must be loaded for it (``MODEL@DEVICE``)."""

    key: Hashable
    case: str
    group: str | None


@dataclass(frozen=True)
class Dropped:
    """A case that will not run, and why."""

    work: Work
    reason: str


@dataclass(frozen=True)
class Lost:
    """What a lost node leaves: the case that it was running, if any, and how many others went back into the queue."""

    killer: Work | None
    requeued: int


class WorkSource(Protocol):
    """What a transport needs from a scheduler."""

    def add_node(self, node: Hashable) -> None:
        """A node is ready for work."""

    def take(self, node: Hashable) -> Work | None:
        """The next case for the node, or None if there is nothing that it should do."""

    def done(self, node: Hashable, key: Hashable, seconds: float | None) -> None:
        """The node finished a case."""

    def lost(self, node: Hashable, *, started: bool) -> Lost:
        """The node died; ``started`` says whether the first case that it held had begun."""


@dataclass
class _Node:
    held: deque[Work] = field(default_factory=deque)
    group: str | None = None
    firsts: set[Hashable] = field(default_factory=set)


class AffinityQueue:
    """The work of one run, dealt out by the policy above.

    Every case is at each moment in exactly one place: queued, held by one node, finished, lost as a killer, or dropped
    with a reason (``dropped``). ``KeyError`` for a node or case that is not known.
    """

    def __init__(
        self, works: Iterable[Work], costs: CostModel | None = None, *, max_crashes: int = DEFAULT_MAX_CRASHES
    ):
        self.costs = costs or CostModel()
        self.max_crashes = max_crashes
        self.dropped: list[Dropped] = []
        self.crashes: dict[str, int] = {}
        self._nodes: dict[Hashable, _Node] = {}
        self._groups: dict[str, deque[Work]] = {}
        self._free: list[Work] = []
        self._works = {work.key: work for work in works}
        for work in self._works.values():
            if work.group is None:
                self._free.append(work)
            else:
                self._groups.setdefault(work.group, deque()).append(work)
        # Stable: equal costs keep the order of collection.
        self._free.sort(key=lambda work: -self.costs.case(work.case))

    @property
    def queued(self) -> int:
        """How many cases no node holds yet."""
        return len(self._free) + sum(len(queue) for queue in self._groups.values())

    @property
    def nodes(self) -> list[Hashable]:
        """The nodes that are alive, oldest first."""
        return list(self._nodes)

    def held(self, node: Hashable) -> tuple[Work, ...]:
        """The cases given to a node and not finished; the first one is running."""
        return tuple(self._nodes[node].held)

    def add_node(self, node: Hashable) -> None:
        """A node is ready for work."""
        self._nodes[node] = _Node()

    def take(self, node: Hashable) -> Work | None:
        """The next case for the node, or None if there is nothing that it should do."""
        state = self._nodes[node]
        before = state.group
        work = self._own(state) or self._unstarted(state) or self._modelless() or self._share(state)
        if work is None:
            state.group = None  # It goes home, so that it no longer stands for its model.
            return None
        if state.group != before:
            state.firsts.add(work.key)
        state.held.append(work)
        return work

    def done(self, node: Hashable, key: Hashable, seconds: float | None) -> None:
        """The node finished a case in so many seconds; None if that says nothing of its cost (it was skipped)."""
        state = self._nodes[node]
        work = self._works[key]
        state.held.remove(work)
        if seconds is not None:
            self.costs.observe(work.case, work.group, seconds, first=key in state.firsts)
        state.firsts.discard(key)

    def lost(self, node: Hashable, *, started: bool) -> Lost:
        """The node died: the case that had begun is the killer, the others go back to the head of their queues."""
        held = self._nodes.pop(node).held
        killer = held.popleft() if held and started else None
        for work in reversed(held):
            self.requeue(work.key)
        if killer is not None and killer.group is not None:
            self._count_crash(killer.group)
        return Lost(killer, len(held))

    def requeue(self, key: Hashable) -> None:
        """Put a case back at the head of its queue (after a crash, for a rerun); drop it if its model is given up."""
        work = self._works[key]
        if work.group is None:
            self._free.insert(0, work)
        elif self.unhealthy(work.group):
            self.dropped.append(Dropped(work, self._diagnosis(work.group)))
        else:
            self._groups.setdefault(work.group, deque()).appendleft(work)

    def unhealthy(self, group: str) -> bool:
        """Whether the model crashed so often that its remaining cases are not run."""
        return self.crashes.get(group, 0) >= self.max_crashes

    def drop_queued(self, reason: str) -> None:
        """Give up everything that is still queued."""
        for queue in (self._free, *self._groups.values()):
            self.dropped.extend(Dropped(work, reason) for work in queue)
            queue.clear()

    def _count_crash(self, group: str) -> None:
        self.crashes[group] = self.crashes.get(group, 0) + 1
        if self.unhealthy(group):
            queue = self._groups.pop(group, deque())
            self.dropped.extend(Dropped(work, self._diagnosis(group)) for work in queue)

    def _diagnosis(self, group: str) -> str:
        return (
            f"model unhealthy: workers crashed in {self.crashes[group]} cases of {group}, its other cases were not run"
        )

    def _own(self, state: _Node) -> Work | None:
        queue = self._groups.get(state.group) if state.group is not None else None
        return queue.popleft() if queue else None

    def _unstarted(self, state: _Node) -> Work | None:
        owned = {other.group for other in self._nodes.values()}
        waiting = [group for group, queue in self._groups.items() if queue and group not in owned]
        if not waiting:
            return None
        return self._enter(state, max(waiting, key=self._remaining)).popleft()

    def _modelless(self) -> Work | None:
        return self._free.pop(0) if self._free else None

    def _share(self, state: _Node) -> Work | None:
        worth = [group for group, queue in self._groups.items() if queue and self._surplus(group) > 0]
        if not worth:
            return None
        # From the tail: owner and helper each keep a stretch of neighbouring cases, and so their module fixtures.
        return self._enter(state, max(worth, key=self._surplus)).pop()

    def _enter(self, state: _Node, group: str) -> deque[Work]:
        state.group = group
        return self._groups[group]

    def _remaining(self, group: str) -> float:
        return sum(self.costs.case(work.case) for work in self._groups[group]) + self.costs.load(group)

    def _surplus(self, group: str) -> float:
        """Seconds that each owner has left beyond the price of one more load; a further owner pays where positive.

        With k owners and R seconds left, one more owner ends the model at (R + load) / (k + 1) instead of R / k: sooner
        exactly where R > k * load.
        """
        owners = sum(1 for node in self._nodes.values() if node.group == group)
        left = sum(self.costs.case(work.case) for work in self._groups[group])
        return left / max(1, owners) - self.costs.load(group)
