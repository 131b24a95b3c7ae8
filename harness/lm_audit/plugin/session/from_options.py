"""Opens the plugin's session from the options: checked before anything heavy, handed on to workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.plugin.cluster.options import on_ray, promised_devices
from lm_audit.plugin.models import devices
from lm_audit.plugin.models.endpoints import ask_servers, reused
from lm_audit.plugin.options.chat_arguments import refuse_unread_arguments
from lm_audit.plugin.options.environment import refuse_environment
from lm_audit.plugin.options.gates_in_vain import refuse_gates_of_absent_models
from lm_audit.plugin.options.naming import declared, given
from lm_audit.plugin.options.run_options import RunOptions, from_config
from lm_audit.plugin.options.without_effect import refuse_misspelt_data
from lm_audit.plugin.record import fingerprints
from lm_audit.plugin.record.audit_session import AuditSession, reports_folder
from lm_audit.plugin.record.earlier import Earlier
from lm_audit.plugin.record.gating import load_gates
from lm_audit.plugin.record.resume import check_same, inherited
from lm_audit.runstore.holding import hold
from lm_audit.runstore.layout import RunFolder, check_writable, new_run_id
from lm_audit.runstore.named import find_run
from lm_audit.runstore.run import read_run
from lm_audit.shared.home import from_home
from lm_audit.shared.visible import is_blank


def new_session(config: pytest.Config) -> AuditSession:
    """The session of a controller or a serial run; ``HarnessError`` for anything that cannot be used."""
    fingerprints.forget()
    _refuse_empty(config)
    reports = reports_folder(config)
    _refuse_emptied(config, reports)
    if given(config):  # else the call may be none of audits, and is left to pytest
        refuse_environment()
    earlier, release = _earlier(config, reports)
    if earlier is not None:
        inherited(config, earlier.options)
    explicit = _named(config, "model")
    options = from_config(config, _devices(config))
    refuse_misspelt_data(options.data)
    _check_specs(options, explicit)
    refuse_unread_arguments(options)
    folder = RunFolder(earlier.run.folder if earlier is not None else _unused(reports))
    if earlier is not None:
        check_same(earlier, options)
    if config.getoption("lm_audit_reports") or earlier:
        check_writable(folder.path.parent)
    session = AuditSession(
        options=options,
        folder=folder,
        worker="controller" if getattr(config.option, "tx", None) or on_ray(config) else "main",
        is_worker=False,
        present=_present(config),
        required=frozenset(devices.kind_of(name) for name in _named(config, "require_device")),
        attempts=earlier.attempts if earlier is not None else {},
        number=earlier.run.sessions + 1 if earlier is not None else 1,
        earlier=earlier,
        extra={} if release is None else {"held": release},
    )
    _judging(session, config)
    before = earlier.options.get("models", {}) if earlier is not None else {}
    refuse_gates_of_absent_models(session.gates, options, str(config.getoption("lm_audit_gates")), before)
    session.reused = reused(config, reports)
    ask_servers(session)
    return session


def _unused(reports: Path) -> Path:
    """The folder of a new run: a second one that begins in the same second must not get the same."""
    while True:
        found = reports / new_run_id()
        if not os.path.lexists(found):
            return found


def hold_run(config: pytest.Config, session: AuditSession) -> None:
    """Hold the run until this call of pytest ends; ``UsageError`` where another one writes it."""
    if "held" not in session.extra:
        release = session.extra["held"] = hold(session.folder)
        config.add_cleanup(release)


def _names_nothing(value: object) -> bool:
    return value in ([], "--") or (isinstance(value, list) and ([] in value or "--" in value))


def _refuse_empty(config: pytest.Config) -> None:
    """``--gates "$GATES"`` with an unset variable must not pass as a run without gates.

    Nor may ``--gates=--``: argparse leaves an empty list in place of that value, and since Python 3.12 the dashes.
    """
    for option in declared():
        value = getattr(config.option, option.arguments["dest"], None)
        if value != option.arguments.get("default") and _names_nothing(value):
            raise UsageError(f"{option.flag} '--': names nothing; give it a value, or leave the option out")
    for name in ("gates", "resume", "baseline", "reports"):
        if config.getoption(f"lm_audit_{name}", None) == "":
            raise UsageError(f"--{name} '': names nothing; give it a value, or leave the option out")
    reports = config.getoption("lm_audit_reports")
    if reports is not None and is_blank(reports):
        raise UsageError(f"--reports {reports!r}: names nothing; give it a folder, or leave the option out")
    if reports is not None and "://" in reports:
        raise UsageError(f"--reports {reports!r} is an address; reports are written into a folder of this machine")
    if reports is not None and str(from_home(reports)).startswith("~"):
        raise UsageError(f"--reports {reports!r:.200}: there is no such home; give the folder's whole path")
    cache_dir()  # which says what is wrong with a home that is none
    workers = getattr(config.option, "numprocesses", None)
    if isinstance(workers, int) and workers < 0:
        raise UsageError(f"-n {workers}: a number of workers from 0, auto or logical is needed")


def _refuse_emptied(config: pytest.Config, reports: Path) -> None:
    """pytest removes what is in ``--basetemp``, and would remove all runs that are kept there."""
    emptied = getattr(config.option, "basetemp", None)
    if emptied and Path(os.path.abspath(reports)).is_relative_to(os.path.abspath(emptied)):
        raise UsageError(f"--basetemp {emptied}: pytest empties that folder, and reports are kept in it; name another")


def _earlier(config: pytest.Config, reports: Path) -> tuple[Earlier | None, Callable[[], None] | None]:
    """What ``--resume`` names, and what lets go of it: held before it is read, or another call may still add to it."""
    named = config.getoption("lm_audit_resume")
    if not named:
        return None, None
    found, release = find_run(named, reports), None
    if not config.getoption("collectonly", False):
        release = hold(RunFolder(found))
        config.add_cleanup(release)
    return Earlier(read_run(found), config.rootpath), release


def _named(config: pytest.Config, option: str) -> list[str]:
    return list(config.getoption(f"lm_audit_{option}") or [])


def _devices(config: pytest.Config) -> tuple[str, ...]:
    required = [devices.check_device(name, "--require-device") for name in _named(config, "require_device")]
    named = [devices.check_device(name, "--device") for name in _named(config, "device")]
    kinds = _present(config)
    if not (config.getoption("collectonly", False) or on_ray(config)):  # what others will run can be listed here
        devices.refuse_absent(named, required, kinds)
    return tuple(dict.fromkeys(named or required or [devices.best(kinds)]))


def _present(config: pytest.Config) -> frozenset[str]:
    return devices.present() | promised_devices(config)


def _check_specs(options: RunOptions, explicit: list[str]) -> None:
    """Refuse a model that cannot be, before anything heavy; the default is looked at only where it is used."""
    if explicit:
        from lm_audit.models import check_spec

        for model in options.models:
            check_spec(model.spec, trust_remote_code=options.trust_remote_code)


def _judging(session: AuditSession, config: pytest.Config) -> AuditSession:
    session.gates = load_gates(config.getoption("lm_audit_gates"))
    session.report_only = bool(config.getoption("lm_audit_report_only"))
    session.undecided_fails = config.getoption("lm_audit_undecided") == "fail"
    return session


def for_worker(session: AuditSession) -> dict[str, Any]:
    """What a worker needs to join the run, in types that xdist can send."""
    return {
        "folder": str(session.folder.path),
        "run": session.folder.run_id,
        "devices": list(session.options.devices),
        "present": sorted(session.present),
        "required": sorted(session.required),
        "resumed": session.earlier is not None,
        "attempts": dict(session.attempts),
        "number": session.number,
        "facts": {name: facts.to_plain() for name, facts in session.facts.items()},
        "reused": [str(folder) for folder in session.reused],
        "remote": False,
    }


def worker_session(config: pytest.Config) -> AuditSession:
    """The session of a worker, which looks nothing up that the controller found.

    A ``remote`` one shares no disk with it: it is also given the gates and the options of a resumed run.
    """
    workerinput: dict[str, Any] = getattr(config, "workerinput")  # noqa: B009
    given = workerinput["lm_audit"]
    folder = RunFolder(Path(given["folder"]))
    earlier = Earlier(read_run(folder.path), config.rootpath) if given["resumed"] and not given["remote"] else None
    if earlier is not None:  # A worker has the caller's arguments, not what its controller inherited.
        inherited(config, earlier.options)
    session = AuditSession(
        options=from_config(config, tuple(given["devices"])),
        folder=folder,
        run=given["run"],
        worker=workerinput["workerid"],
        is_worker=True,
        present=frozenset(given["present"]),
        required=frozenset(given["required"]),
        attempts=dict(given["attempts"]),
        number=given["number"],
        earlier=earlier,
        facts={name: EndpointFacts(**facts) for name, facts in given["facts"].items()},
        reused=tuple(map(Path, given["reused"])),
        clock=given.get("clock", 0.0),
        planned=given["remote"],
    )
    _judging(session, config)
    if given["remote"]:
        session.gates = given["gates"]
    return session
