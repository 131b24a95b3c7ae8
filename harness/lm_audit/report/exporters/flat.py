"""A run as flat names and numbers, the shape that every tracker understands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from lm_audit.errors import StoreError
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.states import case_state
from lm_audit.report.wording.names import case_label
from lm_audit.runstore.inside import file_inside
from lm_audit.runstore.records import Run


def flat_metrics(run: Run, model: str | None) -> dict[str, float]:
    """Metrics of the cases on ``model`` as ``metric/case``, with ``.low``, ``.high``, ``.n``; no void ones."""
    voids = Voids(run)
    found: dict[str, float] = {}
    for case in run.cases:
        if case.model != model or case in voids:
            continue
        for name, estimate in case.last.metrics.items():
            key = safe(f"{name}/{case_label(case)}")
            parts = {"": estimate.value, ".low": estimate.low, ".high": estimate.high, ".n": estimate.n}
            found |= {f"{key}{suffix}": float(value) for suffix, value in parts.items() if value is not None}
    return found


def flat_parameters(run: Run) -> dict[str, str]:
    """What the run was started with, as text."""
    return {key: text[:500] for key, text in _flat("", run.metadata) if not key.startswith("sessions")}


def models_of(run: Run) -> tuple[str | None, ...]:
    """The models of a run in order of appearance; ``None`` for cases without one."""
    return tuple(dict.fromkeys(case.model for case in run.cases))


def states_of(run: Run, model: str | None) -> dict[str, str]:
    """How many cases on ``model`` are in each state."""
    voids = Voids(run)
    counts: dict[str, int] = {}
    for case in run.cases:
        if case.model == model:
            name = case_state(case, void=case in voids).name
            counts[name] = counts.get(name, 0) + 1
    return {f"state.{name}": str(count) for name, count in counts.items()}


def files_of(folder: Path, names: Iterable[str]) -> list[Path]:
    """Those of the files that the run has; a link that leads out of its folder is none of them."""
    found = []
    for name in names:
        with suppress(OSError, StoreError):
            file_inside(folder, name)
            found.append(folder / name)
    return found


def safe(name: str) -> str:
    """``name`` with the characters that trackers allow in names."""
    return re.sub(r"[^A-Za-z0-9_./ -]+", "-", name)[:240]


def _flat(prefix: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for key, entry in value.items() for pair in _flat(f"{prefix}.{key}".strip("."), entry)]
    return [] if value in (None, "", []) else [(safe(prefix), str(value))]
