"""Which kind of worker a case needs: with a GPU or without one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.audit_cases.selection import selection_of
from lm_audit.plugin.cluster.places import Kind
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.parallel.workers import WORKER_BYTES


@dataclass(frozen=True)
class Demand:
    """A kind of worker, the groups that it leaves to the other kind, and whether cases without a model are its."""

    kind: Kind
    refuses: frozenset[str]
    modelless: bool


def kinds_of(config: pytest.Config, items: Iterable[pytest.Item], options: RunOptions) -> tuple[Demand, ...]:
    """The kinds of worker that the items need, the one with a GPU first: it has fewer places to go."""
    groups: dict[bool, set[str | None]] = {True: set(), False: set()}
    for item in items:
        selection = selection_of(item)
        device = selection.device if selection is not None and selection.device else options.device
        groups[device.startswith("cuda")].add(group_of(item.nodeid))
    cpus = config.getoption("lm_audit_cpus_per_worker")
    gpus = config.getoption("lm_audit_gpus_per_worker") or 1.0
    kinds = {True: Kind("GPU", cpus, gpus, WORKER_BYTES), False: Kind("CPU", cpus, 0.0, WORKER_BYTES)}
    return tuple(
        Demand(kinds[gpu], frozenset(group for group in groups[not gpu] if group is not None), None in groups[gpu])
        for gpu in (True, False)
        if groups[gpu]
    )
