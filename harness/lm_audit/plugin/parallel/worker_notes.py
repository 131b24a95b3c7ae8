"""What a worker found at collection and the controller needs: declared costs, and the plan before sharding.

xdist tells its controller the ids and nothing else, so each worker leaves a small file beside.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from lm_audit.plugin.audit_cases.selection import selection_of

folder_key = pytest.StashKey[Path]()


@dataclass(frozen=True)
class FullPlan:
    """What was selected before a shard took its part: how many tests, how many audit cases, the digest of their ids."""

    tests: int
    cases: int
    digest: str


full_plan_key = pytest.StashKey[FullPlan]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose where notes go; the first worker that has one makes the folder."""
    if not hasattr(config, "workerinput") and getattr(config.option, "tx", None):
        config.stash[folder_key] = Path(tempfile.gettempdir()) / f"lm-audit-{secrets.token_hex(8)}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the notes."""
    folder = config.stash.get(folder_key, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where to leave its note."""
    folder = node.config.stash.get(folder_key, None)
    if folder is not None:
        node.workerinput["lm_audit_note"] = str(folder / f"{node.gateway.id}.json")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the note, before xdist tells the controller that the collection is finished; none where all is usual."""
    note = getattr(session.config, "workerinput", {}).get("lm_audit_note")
    if note is None:
        return
    costs = {item.nodeid: cost for item in session.items if (cost := item_cost(item)) != 1.0}
    plan = session.config.stash.get(full_plan_key, None)
    if not costs and plan is None:
        return
    content = {"costs": costs, "plan": None if plan is None else asdict(plan)}
    # A worker on another machine has no such folder; the controller then does without.
    with contextlib.suppress(OSError):
        Path(note).parent.mkdir(mode=0o700, exist_ok=True)
        Path(note).write_text(json.dumps(content), encoding="utf-8")


def item_cost(item: pytest.Item) -> float:
    """The relative cost that a case declares, 1 if it declares none."""
    selection = selection_of(item)
    return float(selection.case.cost) if selection is not None and selection.case is not None else 1.0


def declared_costs(config: pytest.Config) -> dict[str, float]:
    """The declared costs by case id that differ from 1, as the workers found them."""
    costs: dict[str, float] = _note(config).get("costs", {})
    return costs


def full_plan(config: pytest.Config) -> FullPlan | None:
    """What was selected before sharding: known here, or to the workers; None without ``--shard``."""
    plan = config.stash.get(full_plan_key, None)
    noted = _note(config).get("plan")
    return plan if plan is not None or noted is None else FullPlan(**noted)


def _note(config: pytest.Config) -> dict[str, Any]:
    """The first worker's note that can be read; empty if there is none."""
    folder = config.stash.get(folder_key, None)
    for note in sorted(folder.glob("*.json")) if folder is not None else ():
        with contextlib.suppress(OSError, ValueError):
            content: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
            return content
    return {}
