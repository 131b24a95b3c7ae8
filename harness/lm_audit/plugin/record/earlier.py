"""Earlier: what a run that is resumed holds already, and which of its cases read files that are others now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_audit.models.loading.identity.spec_identity import file_state
from lm_audit.runstore.records import CaseRecord, Run


@dataclass
class Earlier:
    """What an earlier session of the run left: its cases by id, and how often each was tried."""

    run: Run
    root: Path = Path()
    cases: Mapping[str, CaseRecord] = field(init=False)

    def __post_init__(self) -> None:
        self.cases = {case.case_id: case for case in self.run.cases}

    @property
    def attempts(self) -> dict[str, int]:
        """The number of attempts of every case."""
        return {case_id: case.last.number for case_id, case in self.cases.items()}

    @cached_property
    def stale(self) -> frozenset[tuple[str, int]]:
        """The eval files, with the session, whose cases read files that are others now."""
        return _changed_since(self.run, self.root)

    @property
    def audits(self) -> frozenset[str | None]:
        """The audits of which the run holds or plans a case."""
        return frozenset(case.audit for case in self.run.cases) | frozenset(case.audit for case in self.run.plan)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the run was started with."""
        options = self.run.metadata.get("options")
        return options if isinstance(options, dict) else {}


def _changed_since(run: Run, root: Path) -> frozenset[tuple[str, int]]:
    """The eval files, with the session of the run, whose cases read a file that is gone or holds something else now."""
    found = set()
    for case in run.cases:
        for attempt in (case.last, *case.earlier):
            if any(file_state(str(root / name)) != digest for name, digest in attempt.read.items()):
                found.add((case.case_id.partition("::")[0], attempt.session))
    return frozenset(found)
