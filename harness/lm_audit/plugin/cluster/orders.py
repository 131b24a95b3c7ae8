"""What controller, actor and session say to one another: plain pickled tuples, the first entry says what it is.

To a session: ``("run", case, attempt, fingerprint)``, ``("alone",)`` after it where no further case is held ready,
``("end",)`` after the last.

From a session: ``("ready", Ready)``, ``("started", case, attempt, location)``, ``("report", case, attempt, data)``,
``("finished", case, attempt, location)``, ``("done", case, attempt, seconds)``, ``("unknown", case, attempt)``,
``("warning", ...)``, ``("failed", text)``, ``("bye",)``. What is said of an attempt that its worker does not have is
dropped.

An actor adds ``("piece", Piece)`` for what its session wrote, and ``("died", how)`` where it ended without ``bye``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lm_audit.shared.reached.package_versions import versions

Message = tuple[Any, ...]


@dataclass(frozen=True)
class Order:
    """What a session needs to join a run."""

    worker: str
    run_id: str
    arguments: tuple[str, ...]
    root: str
    """The controller's rootdir, of which the parcel is a copy; arguments that name it are rewritten."""
    folder: str
    """Where pytest was called, relative to the rootdir."""
    ini: str | None
    session: Mapping[str, Any]
    """What ``worker_session`` takes."""
    options: Mapping[str, Any]
    """Options that are set whatever the arguments say, by dest."""
    named: Mapping[str, str] = field(default_factory=dict)
    """What options name on the controller's disk, as spelt there -> its place in the parcel, or its full path."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Group -> spec: what is looked for before the node gets a case."""
    environment: Mapping[str, str] = field(default_factory=dict)
    workers_of_node: int = 1
    progress: bool = False
    """Whether somebody watches how far cases are."""
    clock: float = 0.0
    """The controller's monotonic clock less the node's."""


def compared_versions() -> dict[str, str]:
    """Versions that must be the same on the controller and on a node: those beneath the numbers, and Ray's own."""
    found = versions()
    with suppress(PackageNotFoundError):
        found = found | {"ray": version("ray")}
    return found


@dataclass(frozen=True)
class Ready:
    """What a session tells of itself before its first case."""

    missing: Mapping[str, str]
    """Groups whose model is not on this node, and what was looked for."""
    code: str
    versions: Mapping[str, str]
