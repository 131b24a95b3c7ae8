"""``--shard i/n``: run one part of n (SLURM arrays, Kubernetes jobs, CI matrices); ``lm-audit merge`` joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.options.naming import declare
from lm_audit.plugin.parallel.shard_assignment import Shard, assign, parse_shard, plan_digest
from lm_audit.plugin.parallel.worker_notes import FullPlan, full_plan, full_plan_key, item_cost
from lm_audit.plugin.record.audit_session import audit_session

if TYPE_CHECKING:
    from lm_audit.plugin.record.earlier import Earlier

_shard_key = pytest.StashKey[Shard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shard``."""
    group = parser.getgroup("lm-audit")
    declare(
        group,
        "--shard",
        dest="lm_audit_shard",
        metavar="I/N",
        help="run the I-th of N parts of the selected cases; join the runs with lm-audit merge",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a shard that does not exist before anything is collected."""
    named = config.getoption("lm_audit_shard", None)
    if named is None and config.getoption("lm_audit_resume", None) is None:
        return
    try:
        _check_resumed(audit_session(config).earlier, named)
        if named is not None:
            config.stash[_shard_key] = parse_shard(named)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _check_resumed(earlier: Earlier | None, named: str | None) -> None:
    before = earlier.options.get("shard") if earlier is not None else named
    if before != named:
        part = f"shard {before}" if before else "a whole run"
        raise UsageError(f"--shard {named}: the run that is resumed is {part}; leave --shard out, or start a new run")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the cases of this shard; after ``-m`` and ``-k``, so that the parts are of what was selected."""
    shard = config.stash.get(_shard_key, None)
    if shard is None:
        return
    ids = [item.nodeid for item in items]
    audited = [item.nodeid for item in items if is_audit_case(item)]
    config.stash[full_plan_key] = FullPlan(len(ids), len(audited), plan_digest(audited))
    places = assign(ids, shard.of, {item.nodeid: item_cost(item) for item in items})
    others = [item for item in items if places[item.nodeid] != shard.index]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if places[item.nodeid] == shard.index]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """An empty shard of a run that has cases is a success: with more shards than cases some must be empty."""
    plan = full_plan(session.config) if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED else None
    if plan is not None and plan.tests:
        session.exitstatus = pytest.ExitCode.OK


def shard_fields(config: pytest.Config) -> dict[str, Any]:
    """What a plan record says of the shard, so that runs can be merged: which part of what; empty without a shard."""
    shard, plan = config.stash.get(_shard_key, None), config.stash.get(full_plan_key, None)
    if shard is None or plan is None:
        return {}
    return {"shard": {"index": shard.index, "of": shard.of, "cases": plan.cases, "digest": plan.digest}}
