"""``--shard i/n``: run one part of n (SLURM arrays, Kubernetes jobs, CI matrices); ``lm-audit merge`` joins them."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.plugin.notes import FullPlan, full_plan, full_plan_key, item_cost
from harness.plugin.sharding import Shard, assign, parse_shard, plan_digest

_shard_key = pytest.StashKey[Shard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shard``."""
    group = parser.getgroup("lm-audit")
    group.addoption(
        "--shard",
        dest="lm_audit_shard",
        metavar="I/N",
        help="run the I-th of N parts of the selected cases; join the runs with lm-audit merge",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a shard that does not exist before anything is collected."""
    named = config.getoption("lm_audit_shard", None)
    if named is not None:
        try:
            config.stash[_shard_key] = parse_shard(named)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the cases of this shard; after ``-m`` and ``-k``, so that the parts are of what was selected."""
    shard = config.stash.get(_shard_key, None)
    if shard is None:
        return
    ids = [item.nodeid for item in items]
    config.stash[full_plan_key] = FullPlan(len(ids), plan_digest(ids))
    places = assign(ids, shard.of, {item.nodeid: item_cost(item) for item in items})
    others = [item for item in items if places[item.nodeid] != shard.index]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if places[item.nodeid] == shard.index]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """An empty shard of a run that has cases is a success: with more shards than cases some must be empty."""
    plan = full_plan(session.config) if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED else None
    if plan is not None and plan.cases:
        session.exitstatus = pytest.ExitCode.OK


def shard_of(config: pytest.Config) -> Shard | None:
    """The shard that this call runs, None if it runs everything."""
    return config.stash.get(_shard_key, None)
