"""Member: one worker of a run as its controller sees it, and what its messages say of its node."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from lm_audit.plugin.cluster.cluster import Remote
from lm_audit.plugin.cluster.kinds import Demand
from lm_audit.plugin.cluster.orders import Message, Ready, compared_versions
from lm_audit.shared import code_version


@dataclass
class Attempt:
    """A case that a worker runs, the number of this attempt at it, and its reports as far as they have come."""

    case: str
    number: int
    reports: list[Any] = field(default_factory=list)
    """Those that pytest has not been told yet."""
    over: bool = False
    """Whether the worker has said that there are no more."""

    @property
    def complete(self) -> bool:
        """Whether all reports have come: after that of the teardown there are more only where it runs once more."""
        last = self.reports[-1] if self.reports else None
        return self.over or (last is not None and last.when == "teardown" and last.outcome != "rerun")


@dataclass(eq=False)
class Member:
    """One worker: an actor that is asked for, comes up, runs cases, and is sent home."""

    name: str
    demand: Demand
    remote: Remote
    node: str | None
    since: float
    placed: bool = False
    """Whether its actor has a process."""
    ready: bool = False
    ending: bool = False
    left: bool = False
    """Whether its session ended in order."""
    given: dict[str, int] = field(default_factory=dict)
    """Case -> number of the attempt, of the cases that it has been sent and has not done."""
    running: Attempt | None = None
    unwritten: str | None = None
    """Why what it sent could not be written, until the running case has said so."""
    outbox: list[Message] = field(default_factory=list)


def reporting_node(worker: str, place: str) -> SimpleNamespace:
    """What pytest and its plugins ask of the worker that a report is from, as xdist has it."""
    info = {"id": worker, "sysplatform": place, "version_info": sys.version_info[:3], "executable": ""}
    return SimpleNamespace(gateway=SimpleNamespace(id=worker), workerinfo=info)


def differences(ready: Ready) -> str:
    """In what a node's code differs from this one's, by which its numbers could differ."""
    own = compared_versions()
    other = [
        f"{name} {ready.versions.get(name, 'absent')}, here {own.get(name, 'absent')}"
        for name in sorted({*own, *ready.versions})
        # `2.13.0+cpu` and `2.13.0+cu130` are builds of one version.
        if ready.versions.get(name, "").partition("+")[0] != own.get(name, "").partition("+")[0]
    ]
    if ready.code != code_version.package_digest():
        other.append(f"lm_audit {ready.code}, here {code_version.package_digest()}")
    return "; ".join(other)
