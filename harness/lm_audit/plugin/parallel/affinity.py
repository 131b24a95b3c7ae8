"""Which case a worker runs next: model affinity, longest work first, and a crash that costs one case.

No pytest, no xdist and no Ray here. A transport (xdist, Ray) calls ``add_node``, ``take``, ``done`` and ``lost``; nodes
are any hashable values.

The policy, in order, when a node asks for work:

1. a case of the model that it holds;
2. the model with most work among those that no node holds;
3. a case without a model, the longest first;
4. a share of a model that others hold, where what is left to each of them costs more than one more load;
5. nothing: the node may go home.

A transport whose workers lie in several places may have a case that killed its node tried once more: such a case comes
before the others, and goes to another place as long as there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable, Iterable

from lm_audit.plugin.parallel.costs import CostModel
from lm_audit.plugin.parallel.work import Dropped, Lost, Node, Stretch, Work

DEFAULT_MAX_CRASHES = 3
"""After so many crashes of one model the rest of its cases is not run."""


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
        self._nodes: dict[Hashable, Node] = {}
        self._groups: dict[str, Stretch] = {}
        self._free: deque[Work] = deque()
        self._again: list[tuple[Work, Hashable]] = []
        self._works = {work.key: work for work in works}
        for work in self._works.values():
            if work.group is not None:
                self._stretch(work.group).append(work)
        # Stable: equal costs keep the order of collection.
        free = (work for work in self._works.values() if work.group is None)
        self._free.extend(sorted(free, key=lambda work: -self.costs.case(work.case)))

    @property
    def queued(self) -> int:
        """How many cases no node holds yet."""
        return len(self._free) + len(self._again) + sum(len(queue) for queue in self._groups.values())

    @property
    def nodes(self) -> list[Hashable]:
        """The nodes that are alive, oldest first."""
        return list(self._nodes)

    def held(self, node: Hashable) -> tuple[Work, ...]:
        """The cases given to a node and not finished; the first one is running."""
        return tuple(self._nodes[node].held)

    def add_node(
        self, node: Hashable, *, refuses: Container[str] = (), modelless: bool = True, place: Hashable = None
    ) -> None:
        """A node is ready for work, save for the models that it ``refuses`` and, unless ``modelless``, what needs none.

        ``place`` is where it lies: a case that is tried again goes elsewhere.
        """
        self._nodes[node] = Node(refuses=refuses, modelless=modelless, place=place)

    def wants(self, *, refuses: Container[str] = (), modelless: bool = True) -> bool:
        """Whether one more node, like :meth:`add_node` has it, would be given a case now."""
        probe = Node(refuses=refuses, modelless=modelless)
        if (modelless and self._free) or any(probe.accepts(work) for work, _ in self._again):
            return True
        return bool(self._waiting(probe)) or any(self._surplus(group) > 0 for group in self._open_to(probe))

    def unheld(self) -> set[str | None]:
        """The groups of the cases that no node holds."""
        groups: set[str | None] = {group for group, queue in self._groups.items() if queue}
        return groups | {work.group for work, _ in self._again} | ({None} if self._free else set())

    def take(self, node: Hashable) -> Work | None:
        """The next case for the node, or None if there is nothing that it should do."""
        state = self._nodes[node]
        before = state.group
        work = (
            self._repeat(state, own=True)
            or self._own(state)
            or self._repeat(state)
            or self._unstarted(state)
            or self._modelless(state)
            or self._share(state)
        )
        if work is None:
            state.group = None  # It goes home, so that it no longer stands for its model.
            return None
        if state.group != before:
            state.firsts.add(work.key)
        state.held.append(work)
        return work

    def take_ahead(self, node: Hashable, spare: int = 0) -> Work | None:
        """A case of the model that the node holds, to keep ready beside the one that runs; None where there is none.

        The last ``spare`` cases of a model are left for nodes that have nothing to do.
        """
        state = self._nodes[node]
        queue = self._groups.get(state.group) if state.group is not None else None
        if queue is None or len(queue) <= spare:
            return None
        state.held.append(_next(state, queue))
        return state.held[-1]

    def done(self, node: Hashable, key: Hashable, seconds: float | None) -> None:
        """The node finished a case in so many seconds; None if that says nothing of its cost (it was skipped)."""
        state = self._nodes[node]
        work = self._works[key]
        state.held.remove(work)
        if seconds is not None:
            self.costs.observe(work.case, work.group, seconds, first=key in state.firsts)
        state.firsts.discard(key)

    def lost(self, node: Hashable, *, started: bool, again: bool = False) -> Lost:
        """The node died: the case that had begun is the killer, the others go back to the head of their queues.

        With ``again`` the killer is tried once more, in another place, and is no crash of its model yet.
        """
        state = self._nodes.pop(node)
        held = state.held
        killer = held.popleft() if held and started else None
        for work in reversed(held):
            self.requeue(work.key)
        if killer is not None and again:
            if killer.group is not None and self.unhealthy(killer.group):
                self.dropped.append(Dropped(killer, self._diagnosis(killer.group)))
            else:
                self._again.append((killer, state.place))
        elif killer is not None and killer.group is not None:
            self._count_crash(killer.group)
        return Lost(killer, len(held))

    def requeue(self, key: Hashable) -> None:
        """Put a case back at the head of its queue (after a crash, for a rerun); drop it if its model is given up."""
        work = self._works[key]
        if work.group is None:
            self._free.appendleft(work)
        elif self.unhealthy(work.group):
            self.dropped.append(Dropped(work, self._diagnosis(work.group)))
        else:
            self._stretch(work.group).appendleft(work)

    def unhealthy(self, group: str) -> bool:
        """Whether the model crashed so often that its remaining cases are not run."""
        return self.crashes.get(group, 0) >= self.max_crashes

    def drop_queued(self, reason: str) -> None:
        """Give up everything that is still queued."""
        for group in self.unheld():
            self.give_up(group, reason)

    def give_up(self, group: str | None, reason: str) -> None:
        """Give up the queued cases of one model, or those without a model."""
        queue = self._groups.pop(group, None) if group is not None else None
        works = [work for work, _ in self._again if work.group == group]
        works += self._free if group is None else queue.works if queue is not None else ()
        self.dropped.extend(Dropped(work, reason) for work in works)
        self._again = [entry for entry in self._again if entry[0].group != group]
        if group is None:
            self._free.clear()

    def _count_crash(self, group: str) -> None:
        self.crashes[group] = self.crashes.get(group, 0) + 1
        if self.unhealthy(group):
            self.give_up(group, self._diagnosis(group))

    def _diagnosis(self, group: str) -> str:
        return (
            f"model unhealthy: workers crashed in {self.crashes[group]} cases of {group}, its other cases were not run"
        )

    def _stretch(self, group: str) -> Stretch:
        if group not in self._groups:
            self._groups[group] = Stretch(self.costs)
        return self._groups[group]

    def _repeat(self, state: Node, *, own: bool = False) -> Work | None:
        for index, (work, place) in enumerate(self._again):
            if (own and work.group != state.group) or not state.accepts(work):
                continue
            if place == state.place and self._elsewhere(work, place):
                continue
            del self._again[index]
            if work.group is not None:
                state.group = work.group
            return work
        return None

    def _elsewhere(self, work: Work, place: Hashable) -> bool:
        return any(other.place != place and other.accepts(work) for other in self._nodes.values())

    def _own(self, state: Node) -> Work | None:
        queue = self._groups.get(state.group) if state.group is not None else None
        return _next(state, queue) if queue else None

    def _open_to(self, state: Node) -> list[str]:
        return [group for group, queue in self._groups.items() if queue and group not in state.refuses]

    def _waiting(self, state: Node) -> list[str]:
        owned = {other.group for other in self._nodes.values()}
        return [group for group in self._open_to(state) if group not in owned]

    def _unstarted(self, state: Node) -> Work | None:
        waiting = self._waiting(state)
        if not waiting:
            return None
        state.helps = False
        return self._enter(state, max(waiting, key=self._remaining)).popleft()

    def _modelless(self, state: Node) -> Work | None:
        return self._free.popleft() if self._free and state.modelless else None

    def _share(self, state: Node) -> Work | None:
        worth = [group for group in self._open_to(state) if self._surplus(group) > 0]
        if not worth:
            return None
        state.helps = True
        return self._enter(state, max(worth, key=self._surplus)).pop()

    def _enter(self, state: Node, group: str) -> Stretch:
        state.group = group
        return self._groups[group]

    def _remaining(self, group: str) -> float:
        return self._groups[group].seconds() + self.costs.load(group)

    def _surplus(self, group: str) -> float:
        """Seconds that each owner has left beyond the price of one more load; a further owner pays where positive.

        With k owners and R seconds left, one more owner ends the model at (R + load) / (k + 1) instead of R / k: sooner
        exactly where R > k * load.
        """
        owners = sum(1 for node in self._nodes.values() if node.group == group)
        return self._groups[group].seconds() / max(1, owners) - self.costs.load(group)


def _next(state: Node, queue: Stretch) -> Work:
    """The case of its model that a node takes next.

    A helper works from the tail towards the owner, so that each keeps a stretch of neighbouring cases, and with it what
    module fixtures hold: what two cases share is measured twice only where the stretches meet.
    """
    return queue.pop() if state.helps else queue.popleft()
