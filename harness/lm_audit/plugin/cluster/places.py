"""How many workers of which kind a cluster has room for, and on which nodes. Knows nothing of Ray's interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_FAILED_STARTS = 2
"""After so many workers in a row that did not start on a node no more are started there."""


@dataclass(frozen=True)
class Kind:
    """What a worker asks of its node; ``gpus`` 0 for the cases on the CPU."""

    name: str
    cpus: int
    gpus: float
    memory: int

    @property
    def resources(self) -> dict[str, float]:
        """By Ray's names, without those that it does not ask for."""
        wanted = {"CPU": float(self.cpus), "GPU": self.gpus, "memory": float(self.memory)}
        return {name: amount for name, amount in wanted.items() if amount}

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU" if self.gpus else ""
        return f"{self.cpus} CPU{gpus}, {self.memory / (1 << 30):.3g} GiB of memory"


@dataclass(frozen=True)
class Node:
    """A node that is alive: Ray's id, what people call it, and its total resources."""

    id: str
    host: str
    resources: Mapping[str, float]

    @property
    def name(self) -> str:
        """Host and the start of the id: two nodes may share a host."""
        return f"{self.host} ({self.id[:8]})"

    def slots(self, kind: Kind, taken: Iterable[Kind] = ()) -> int:
        """How many workers of a kind there is room for beside those ``taken``."""
        left = dict(self.resources)
        for other in taken:
            for name, amount in other.resources.items():
                left[name] = left.get(name, 0.0) - amount
        # Fractions of GPUs are tenths of thousandths in Ray; a rounding error must not cost a worker.
        return max(0, min(int(left.get(name, 0.0) / amount + 1e-6) for name, amount in kind.resources.items()))


class Places:
    """Where workers are, and where the next one goes: on each node in turn, where there is room."""

    def __init__(self, limit: int | None = None):
        self.limit = limit
        self.nodes: dict[str, Node] = {}
        self._names: dict[str, str] = {}
        self.bad: dict[str, str] = {}
        """Nodes on which no worker is started any more, and why."""
        self.useless: set[str] = set()
        """Those whose own sessions have said that they cannot run; where actors died a node may only be gone."""
        self.missing: dict[str, dict[str, str]] = {}
        """Node -> group -> why its model is not there."""
        self._workers: dict[str, tuple[str, Kind]] = {}
        self._failed: Counter[str] = Counter()

    def seen(self, nodes: Iterable[Node]) -> None:
        """The nodes that are alive now."""
        self.nodes = {node.id: node for node in nodes}
        self._names |= {node.id: node.name for node in self.nodes.values()}

    def name(self, node: str | None) -> str:
        """What people call a node, alive or not."""
        unnamed = f"node {(node or 'unknown')[:8]}"
        return unnamed if node is None else self._names.get(node, unnamed)

    def on(self, node: str) -> int:
        """How many workers are on a node."""
        return sum(1 for where, _ in self._workers.values() if where == node)

    def next(self, kind: Kind) -> str | None:
        """The node for one more worker of a kind, the one with the fewest; None where there is no room."""
        if self.limit is not None and len(self._workers) >= self.limit:
            return None
        room = [
            node.id for node in self.nodes.values()
            if node.id not in self.bad
            and node.slots(kind, [other for where, other in self._workers.values() if where == node.id]) > 0
        ]  # fmt: skip
        return min(room, key=self.on, default=None)

    def share(self, node: str, kind: Kind) -> int:
        """Among how many workers of a kind the memory of a node is divided."""
        return max(1, self.nodes[node].slots(kind)) if node in self.nodes else 1

    def took(self, worker: str, node: str, kind: Kind) -> None:
        """A worker is asked for on a node."""
        self._workers[worker] = (node, kind)

    def left(self, worker: str) -> None:
        """A worker is gone."""
        self._workers.pop(worker, None)

    def started(self, node: str) -> None:
        """A worker came up: the node is sound."""
        self._failed.pop(node, None)

    def failed(self, node: str, why: str) -> bool:
        """A worker did not come up; True where the node is given up now because of it."""
        self._failed[node] += 1
        if self._failed[node] < MAX_FAILED_STARTS or node in self.bad:
            return False
        self.bad[node] = why
        return True

    def missing_everywhere(self) -> set[str]:
        """Groups whose model no node has, as far as all nodes have told."""
        nodes = [node for node in self.nodes if node not in self.bad]
        told = [set(self.missing[node]) for node in nodes if node in self.missing]
        return set.intersection(*told) if told and len(told) == len(nodes) else set()

    def hopeless(self, kinds: Iterable[Kind]) -> bool:
        """Whether every node that has room for a worker has been given up, and not only because it may be lost."""
        wanted = list(kinds)
        roomy = [node.id for node in self.nodes.values() if any(node.slots(kind) for kind in wanted)]
        return bool(roomy) and all(node in self.bad and node in self.useless for node in roomy)


def shown_resources(resources: Mapping[str, float]) -> str:
    """What a node has or has free, in words."""
    parts = [f"{resources.get('CPU', 0):g} CPU", f"{resources.get('GPU', 0):g} GPU"]
    return ", ".join([*parts, f"{resources.get('memory', 0) / (1 << 30):.3g} GiB of memory"])
