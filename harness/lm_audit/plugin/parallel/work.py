"""Work of the affinity queue: a case, what became of it, and the stretch of cases that a worker runs next."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable
from dataclasses import dataclass, field

from lm_audit.plugin.parallel.costs import CostModel


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


@dataclass
class Node:
    held: deque[Work] = field(default_factory=deque)
    group: str | None = None
    helps: bool = False
    firsts: set[Hashable] = field(default_factory=set)
    refuses: Container[str] = ()
    modelless: bool = True
    place: Hashable = None

    def accepts(self, work: Work) -> bool:
        return self.modelless if work.group is None else work.group not in self.refuses


class Stretch:
    """The queued cases of one model, and what they are expected to take in all."""

    def __init__(self, costs: CostModel) -> None:
        self._costs = costs
        self.works: deque[Work] = deque()
        self._known = self._units = 0.0

    def __len__(self) -> int:
        return len(self.works)

    def append(self, work: Work) -> None:
        self.works.append(work)
        self._count(work, 1)

    def appendleft(self, work: Work) -> None:
        self.works.appendleft(work)
        self._count(work, 1)

    def pop(self) -> Work:
        return self._out(self.works.pop())

    def popleft(self) -> Work:
        return self._out(self.works.popleft())

    def seconds(self) -> float:
        """Expected seconds of all cases. A running sum: adding them up at every question grows with their square."""
        return self._known + self._units * self._costs.rate()

    def _out(self, work: Work) -> Work:
        if self.works:
            self._count(work, -1)
        else:
            self._known = self._units = 0.0
        return work

    def _count(self, work: Work, sign: int) -> None:
        known, units = self._costs.parts(work.case)
        self._known += sign * known
        self._units += sign * units
