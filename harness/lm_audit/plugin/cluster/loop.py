"""Where cases would run in this process, they are sent to a cluster: what is left to do, what travels, who waits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import StoreError, UsageError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.loading.spec import parse_spec
from lm_audit.plugin.activation import is_awake
from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.audit_cases.selection import selection_of
from lm_audit.plugin.cluster.cluster import Cluster
from lm_audit.plugin.cluster.controller import Controller
from lm_audit.plugin.cluster.kinds import kinds_of
from lm_audit.plugin.cluster.orders import Order
from lm_audit.plugin.cluster.parcel.packing import Parcel, pack
from lm_audit.plugin.options.model_choice import spelt
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.durations import recorded_costs
from lm_audit.plugin.parallel.threads import worker_threads
from lm_audit.plugin.parallel.work import Work
from lm_audit.plugin.parallel.worker_notes import item_cost
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.plugin.record.resume import stands
from lm_audit.plugin.session.from_options import for_worker

_LOCAL_TO_CONTROLLER: dict[str, Any] = {
    "lm_audit_ray": None, "lm_audit_ray_ship": None, "lm_audit_resume": None, "lm_audit_reports": None,
    "lm_audit_gates": None, "lm_audit_baseline": None, "lm_audit_export": None,
    "lf": False, "last_failed": False, "failedfirst": False, "newfirst": False, "stepwise": False,
    "stepwise_skip": False, "usepdb": False, "basetemp": None, "numprocesses": None, "maxprocesses": None,
    "dist": "no", "tx": [], "looponfail": False, "maxfail": 0,
}  # fmt: skip
"""Options that are the controller's alone, by dest, and what a worker has instead."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected cases on the cluster; what an earlier session of the run has done is not sent."""
    config = session.config
    if config.option.collectonly or not session.items:
        return None
    if session.testsfailed and not config.option.continue_on_collection_errors:
        return None
    items = _left(session)
    if not items:
        return True
    with tempfile.TemporaryDirectory(prefix="lm-audit-parcel-") as folder:
        try:
            _run(session, items, Path(folder))
        except (UsageError, StoreError) as error:
            raise pytest.UsageError(str(error)) from error
    return True


def _left(session: pytest.Session) -> list[pytest.Item]:
    """The items that must run; those that stand are reported."""
    if not is_awake(session.config):
        return list(session.items)
    audit = audit_session(session.config)
    left = []
    for item in session.items:
        if stands(item, audit) is None:
            left.append(item)
        else:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            _check(session)
    return left


def _check(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _run(session: pytest.Session, items: list[pytest.Item], folder: Path) -> None:
    config = session.config
    audit = audit_session(config)
    served = [model.name for model in audit.options.models if is_endpoint(model.spec)]
    if served:
        raise UsageError(
            f"--ray: {', '.join(served)} is behind a server, whose requests in flight and tokens are counted on one "
            "machine; leave out --ray, or run it with -n"
        )
    parcel = pack(config, items, audit.options, folder)
    queue = AffinityQueue(
        [Work(item.nodeid, item.nodeid, group_of(item.nodeid)) for item in items],
        _costs(config, items),
        max_crashes=config.getoption("lm_audit_max_model_crashes"),
    )
    cluster = Cluster(
        config.getoption("lm_audit_ray"), parcel.working, parcel.package, config.getoption("lm_audit_ray_timeout")
    )
    try:
        controller = Controller(
            session, audit, queue, cluster, kinds_of(config, items, audit.options), _order(config, audit, items, parcel)
        )
        controller.run()
    finally:
        cluster.close()


def _costs(config: pytest.Config, items: Iterable[pytest.Item]) -> Any:
    costs = recorded_costs(config)
    costs.hints = {item.nodeid: cost for item in items if (cost := item_cost(item)) != 1.0}
    return costs


def _worker_options(config: pytest.Config, audit: AuditSession) -> dict[str, Any]:
    """What a worker's options are whatever its arguments say; a run that is resumed has inherited some."""
    options = audit.options
    return _LOCAL_TO_CONTROLLER | {
        "lm_audit_model": [spelt(replace(model, spec=_absolute(model.spec, config))) for model in options.models],
        "lm_audit_data": [f"{name}={where}" for name, where in options.data.items()] or None,
        "lm_audit_size": options.size,
        "lm_audit_limit": options.limit,
        "lm_audit_seed": options.seed,
        "lm_audit_dtype": options.dtype,
        "lm_audit_device_map": options.device_map,
        "lm_audit_batch_tokens": options.batch_tokens,
        "lm_audit_packed_weights": {True: "on", False: "off", None: None}[options.packed_weights],
        "lm_audit_chat": config.getoption("lm_audit_chat"),
        "lm_audit_chat_args": config.getoption("lm_audit_chat_args"),
        "lm_audit_thinking_tokens": config.getoption("lm_audit_thinking_tokens"),
        "lm_audit_shard": config.getoption("lm_audit_shard"),
        **{f"lm_audit_x_{name}": value for name, value in options.audit.items()},
    }


def _absolute(spec: str, config: pytest.Config) -> str:
    """A model's folder or file by its full path: a worker calls pytest elsewhere."""
    path = parse_spec(spec).path
    return str((config.invocation_params.dir / path).resolve()) if path is not None else spec


def _arguments(config: pytest.Config) -> tuple[str, ...]:
    """The caller's words. Where pytest was called outside of the rootdir, what names tests becomes a full path."""
    called = config.invocation_params.dir
    words = [str(word) for word in config.invocation_params.args]
    if called.resolve().is_relative_to(config.rootpath.resolve()):
        return tuple(words)
    return tuple(_full(word, called) if word in config.args else word for word in words)


def _full(word: str, called: Path) -> str:
    path, colons, part = word.partition("::")
    return f"{(called / path).resolve()}{colons}{part}" if (called / path).exists() else word


def _order(config: pytest.Config, audit: AuditSession, items: list[pytest.Item], parcel: Parcel) -> Order:
    from lm_audit.plugin.cluster.cluster import passed_environment
    from lm_audit.plugin.progress.progress_reports import wanted

    root, called = config.rootpath.resolve(), config.invocation_params.dir.resolve()
    ini = config.inipath.resolve() if config.inipath is not None else None
    models: dict[str, str] = {}
    for item in items:
        selection, group = selection_of(item), group_of(item.nodeid)
        if group is not None and selection is not None and selection.model is not None:
            models[group] = _absolute(selection.model.spec, config)
    return Order(
        worker="",
        run_id=audit.folder.run_id,
        arguments=_arguments(config),
        root=str(root),
        folder=called.relative_to(root).as_posix() if called.is_relative_to(root) else ".",
        ini=ini.relative_to(root).as_posix() if ini is not None and ini.is_relative_to(root) else None,
        session=for_worker(audit) | {"remote": True, "gates": audit.gates, "resumed": False, "attempts": {}},
        options=_worker_options(config, audit),
        named=parcel.named,
        models=models,
        environment=passed_environment(worker_threads(config)),
        progress=wanted(config),
    )
