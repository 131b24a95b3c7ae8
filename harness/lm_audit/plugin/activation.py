"""Wakes the plugin where there are audit cases; a run of other tests goes on as if it were not installed.

What costs something in every test, writes files, listens for signals or sets the environment lies in modules that are
registered when a process has collected its first audit case. A controller of workers collects nothing: it wakes when
the first worker with audit cases has collected.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Any

import pytest

from lm_audit.errors import HarnessError, UsageError
from lm_audit.plugin.audit_cases import markers
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.options.naming import given
from lm_audit.plugin.options.outputs_of_pytest import refuse_unusable, refuse_unwritable
from lm_audit.plugin.record.audit_session import AuditSession, audit_session
from lm_audit.shared.reached import opened

AWAKE = (
    "lm_audit.plugin.options.without_effect",
    "lm_audit.plugin.parallel.threads",
    "lm_audit.plugin.session.lifetime",
    "lm_audit.plugin.record.attempts",
    "lm_audit.plugin.record.gating",
    "lm_audit.plugin.record.resume",
    "lm_audit.plugin.parallel.crashes",
    "lm_audit.plugin.progress.progress_reports",
    "lm_audit.plugin.progress.telling",
    "lm_audit.plugin.parallel.durations",
    "lm_audit.plugin.session.lost_output",
    "lm_audit.plugin.session.signals",
    "lm_audit.plugin.session.told_interrupt",
    "lm_audit.plugin.session.case_timeout",
)
"""Registered on waking, in this order."""

_awake_key = pytest.StashKey[bool]()
_looping_key = pytest.StashKey[pytest.Session]()
_refused_key = pytest.StashKey[bool]()


class Hooks:
    """What modules of the plugin implement to be told of the run."""

    @pytest.hookspec(firstresult=True)
    def pytest_lm_audit_open(self, config: pytest.Config) -> AuditSession | None:
        """The session state of this process, made from the options; ``HarnessError`` for what cannot be used."""

    @pytest.hookspec
    def pytest_lm_audit_planned(self, session: pytest.Session) -> None:
        """This process has collected audit cases and will run them, or a worker of this controller has."""

    @pytest.hookspec
    def pytest_lm_audit_loop_begin(self, session: pytest.Session) -> None:
        """Cases begin to run, here or in workers."""

    @pytest.hookspec
    def pytest_lm_audit_loop_end(self, session: pytest.Session, stopped: bool) -> None:
        """No case runs any more; ``stopped`` where an exception (Ctrl-C, a signal) ended the loop."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make the hooks known."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_lm_audit_open(config: pytest.Config) -> AuditSession:
    """A worker takes what its controller found; imported here, since a run without audit cases needs none of it."""
    from lm_audit.plugin.session.from_options import new_session, worker_session

    return worker_session(config) if hasattr(config, "workerinput") else new_session(config)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None]:
    """``pytest --pyargs lm_audit.evals``: the shipped suite brings the short names along, as far as they are free.

    The conftest of a package named by ``--pyargs`` is read too late to add options, so that this cannot be left to it.
    What conftest files read counts for their cases. pytest opens the file of ``--debug`` next, and would break at it.
    """
    opened.watch()
    try:
        refuse_unwritable(getattr(early_config.known_args_namespace, "debug", None), "--debug", folder_is_made=False)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    yield
    if early_config.known_args_namespace.pyargs and any(word.startswith("lm_audit.evals") for word in args):
        early_config.pluginmanager.import_plugin("lm_audit.plugin.short_options")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers; check the options at once where one is given, before anything heavy.

    Where none is, there may be audits all the same: what pytest would break at when they have run is told now.
    """
    markers.register(config)
    opened.watch()
    if config.pluginmanager.hasplugin("html"):  # It draws its table's head before anything is collected.
        _register(config, "lm_audit.report.in_pytest.html_table")
    if hasattr(config, "workerinput"):
        return
    try:
        refuse_unusable(config)
        if given(config):
            audit_session(config)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def is_awake(config: pytest.Config) -> bool:
    """Whether this process runs audit cases, or has workers that do."""
    return config.stash.get(_awake_key, False)


def runs_nothing(config: pytest.Config) -> bool:
    """Whether this call of pytest only lists something, so that there is nothing to put on record."""
    listing = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")
    return any(config.getoption(name, False) for name in listing)


def wake(config: pytest.Config) -> None:
    """Register what an audit needs; hooks that come later in the run are called from now on."""
    if is_awake(config):
        return
    config.stash[_awake_key] = True
    for name in AWAKE:
        _register(config, name)
    looping = config.stash.get(_looping_key, None)
    if looping is not None:
        config.hook.pytest_lm_audit_loop_begin(session=looping)


def _register(config: pytest.Config, name: str) -> None:
    if not config.pluginmanager.has_plugin(name):
        config.pluginmanager.register(import_module(name), name)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config) -> Generator[None]:
    """pytest tells of a finished collection also where it has just refused the selection (an unknown ``-m``)."""
    try:
        yield
    except BaseException:
        config.stash[_refused_key] = True
        raise


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Wake if an audit case was selected, and have the plan put on record before xdist tells the controller."""
    if session.config.stash.get(_refused_key, False):
        return
    if runs_nothing(session.config) or not any(is_audit_case(item) for item in session.items):
        opened.rest()
        return
    if session.config.getoption("setuponly", False):
        if hasattr(session.config, "workerinput"):
            return  # Asleep no case can record, and each one fails at its set-up.
        raise pytest.UsageError(
            "--setup-only: audit cases would be on record as passed, though nothing of them had run; "
            "--setup-plan shows their fixtures, --collect-only the cases"
        )
    wake(session.config)
    session.config.hook.pytest_lm_audit_planned(session=session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which run it works for, if there will be one."""
    from lm_audit.plugin.session.from_options import for_worker

    try:
        node.workerinput["lm_audit"] = for_worker(audit_session(node.config))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """A worker with audit cases has put its plan on record by now: the controller wakes."""
    audit = audit_session(node.config)
    if not is_awake(node.config) and any(audit.folder.ledger.glob(f"{node.gateway.id}-*.jsonl")):
        wake(node.config)
        node.config.hook.pytest_lm_audit_planned(session=node.config.stash[_looping_key])


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Tell the modules when cases begin to run and when none does any more."""
    config = session.config
    config.stash[_looping_key] = session
    if is_awake(config):
        config.hook.pytest_lm_audit_loop_begin(session=session)
    stopped = True
    try:
        result = yield
        stopped = False
        return result
    finally:
        if is_awake(config):
            config.hook.pytest_lm_audit_loop_end(session=session, stopped=stopped)
