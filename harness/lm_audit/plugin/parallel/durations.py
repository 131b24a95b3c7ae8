"""How long cases and model loads took, kept from run to run in ``durations.json`` of the reports folder.

A convenience for the scheduler: deleting the file loses nothing but a better order.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import StoreError
from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.parallel.costs import CostModel
from lm_audit.plugin.parallel.crashes import planned_ids
from lm_audit.plugin.record.audit_session import reports_folder
from lm_audit.runstore.inside import SETTINGS, refuse_huge
from lm_audit.shared.textfiles import is_file, replacing

FILE = "durations.json"


def durations_file(config: pytest.Config) -> Path:
    """Where the durations of earlier runs are kept."""
    return reports_folder(config) / FILE


def read_durations(file: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds by case id and by model; both empty where the file is absent or damaged."""
    if not is_file(file):
        return {}, {}
    try:
        refuse_huge(file, most=SETTINGS)
        content = json.loads(file.read_text(encoding="utf-8"))
        return _seconds(content["cases"]), _seconds(content["loads"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, StoreError):
        return {}, {}


def recorded_costs(config: pytest.Config) -> CostModel:
    """The costs that earlier runs measured."""
    cases, loads = read_durations(durations_file(config))
    return CostModel(case_s=cases, load_s=loads)


def _seconds(table: dict[Any, Any]) -> dict[str, float]:
    return {str(key): float(value) for key, value in table.items() if float(value) >= 0}


class DurationRecorder:
    """Collects durations in the controller or the serial process, and merges them into the file at the end.

    ``audited`` gives the ids of the audit cases; other tests of the run are none of the scheduler's business.
    A worker's first case of a model pays for the load in its set-up, which therefore counts as the load.
    """

    def __init__(self, file: Path, audited: Callable[[], Container[str]]) -> None:
        self.file = file
        self.audited = audited
        self.cases: dict[str, float] = {}
        self.loads: dict[str, float] = {}
        self._loaded: set[tuple[str, str]] = set()
        self._open: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a case that really ran."""
        if getattr(report, "lm_audit_resumed", False):
            return
        if report.when == "setup" and report.passed:
            self._setup(report)
        elif report.when == "call" and report.nodeid in self._open:
            if report.skipped:
                del self._open[report.nodeid]
            else:
                self._open[report.nodeid] += report.duration
        elif report.when == "teardown" and report.nodeid in self._open:
            self.cases[report.nodeid] = self._open.pop(report.nodeid) + report.duration

    def _setup(self, report: pytest.TestReport) -> None:
        group = group_of(report.nodeid)
        place = (getattr(report, "worker_id", ""), group or "")
        if group is not None and place not in self._loaded:
            self._loaded.add(place)
            self.loads[group] = report.duration
            self._open[report.nodeid] = 0.0
        else:
            self._open[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        """Merge into the file, atomically; a reports folder that is absent or unwritable is no error here."""
        audited = self.audited()
        self.cases = {case: seconds for case, seconds in self.cases.items() if case in audited}
        if not self.cases or not self.file.parent.is_dir():
            return
        cases, loads = read_durations(self.file)
        content = {"cases": cases | self.cases, "loads": loads | self.loads}
        rounded = {part: {key: round(value, 4) for key, value in table.items()} for part, table in content.items()}
        with contextlib.suppress(OSError), replacing(self.file) as draft:
            draft.write_text(json.dumps(rounded, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations where reports arrive: in the controller, or in a run without workers."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        recorder = DurationRecorder(durations_file(config), lambda: planned_ids(config))
        config.pluginmanager.register(recorder, "lm-audit-durations")
