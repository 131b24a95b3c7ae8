"""AuditSession: what the plugin knows during one pytest process, kept in the config's stash."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import StoreError
from lm_audit.shared.home import from_home

if TYPE_CHECKING:
    from lm_audit.gates.gate import Gate
    from lm_audit.models.endpoint.facts import EndpointFacts
    from lm_audit.plugin.options.run_options import RunOptions
    from lm_audit.plugin.record.earlier import Earlier
    from lm_audit.runstore.layout import RunFolder
    from lm_audit.runstore.ledger import Ledger
    from lm_audit.runstore.records import PlannedCase


@dataclass
class AuditSession:
    """One process's view of a run: the controller makes the run, workers join it."""

    options: RunOptions
    folder: RunFolder
    worker: str
    is_worker: bool
    present: frozenset[str]
    required: frozenset[str]
    gates: tuple[Gate, ...] = ()
    report_only: bool = False
    undecided_fails: bool = False
    earlier: Earlier | None = None
    """What an earlier session of a resumed run left."""
    number: int = 1
    """Which session of its run this is."""
    plan: tuple[PlannedCase, ...] = ()
    attempts: dict[str, int] = field(default_factory=dict)
    facts: dict[str, EndpointFacts] = field(default_factory=dict)
    """What asking the servers has shown, by name of model."""
    reused: tuple[Path, ...] = ()
    """Folders of answers of earlier runs that may be used again."""
    given_fingerprints: dict[str, str] = field(default_factory=dict)
    """Of cases whose controller knows them: files that count by their time differ from machine to machine."""
    clock: float = 0.0
    """The monotonic clock of the run's controller less this machine's."""
    run: str | None = None
    """The run's id where the folder does not bear it: a node of a cluster has one of its own."""
    planned: bool = False
    """Whether a controller that collects itself has put the plan on record."""
    extra: dict[str, Any] = field(default_factory=dict)
    _ledger: Ledger | None = None

    @cached_property
    def problem(self) -> str | None:
        """Why the reports folder cannot be used, None where it can; looked at once, and only where there is a run."""
        from lm_audit.runstore.layout import check_writable

        try:
            check_writable(self.folder.path.parent)
        except StoreError as error:
            return str(error)
        return None

    @property
    def ledger(self) -> Ledger:
        """This process's ledger, opened at first use; ``StoreError`` where that fails."""
        from lm_audit.runstore.ledger import Ledger

        if self._ledger is None:
            if self.problem:
                raise StoreError(self.problem)
            self.folder.create()
            self._ledger = Ledger(
                self.folder.ledger, self.worker, self.number, self.clock, self.run or self.folder.run_id
            )
        return self._ledger

    @property
    def recorded(self) -> bool:
        """Whether this process has written to its ledger."""
        return self._ledger is not None

    def next_attempt(self, case_id: str) -> int:
        """The number of the attempt that begins now, from 1."""
        self.attempts[case_id] = self.attempts.get(case_id, 0) + 1
        return self.attempts[case_id]


SESSION: pytest.StashKey[AuditSession] = pytest.StashKey()


def audit_session(config: pytest.Config) -> AuditSession:
    """The session state of this process, made from the options at first use; a worker takes what its controller found.

    Raises ``HarnessError`` for options that cannot be used.
    """
    if SESSION not in config.stash:
        config.stash[SESSION] = config.hook.pytest_lm_audit_open(config=config)
    return config.stash[SESSION]


def reports_folder(config: pytest.Config) -> Path:
    """Where runs are kept: ``--reports``, relative to where pytest was called, else ``reports/`` of the rootdir."""
    named = config.getoption("lm_audit_reports")
    return config.invocation_params.dir / from_home(named) if named else config.rootpath / "reports"
