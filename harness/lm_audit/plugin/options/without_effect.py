"""What was asked for and would change nothing: a name that nobody knows, an option of an audit that does not run.

A name that is nearly one of ours is refused before anything is collected, one that no case can read before any runs.
What may be meant for a part of the suite
that was not selected is a warning, once, before a model loads.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from lm_audit.errors import DataWarning, UsageError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.plugin.audit_cases.markers import audit_of
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.audit_cases.suite import is_shipped
from lm_audit.plugin.options.audit_options import audit_options, data_sets, option_owners
from lm_audit.plugin.options.chat_arguments import unknown_templates
from lm_audit.plugin.options.gates_in_vain import gates_in_vain, refuse_contradictory_gates
from lm_audit.plugin.options.naming import is_given
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.options.unknown_windows import unknown_windows
from lm_audit.plugin.parallel.workers import REFUSED
from lm_audit.plugin.record.audit_session import audit_session
from lm_audit.shared.names import twin
from lm_audit.shared.number_checks import nearest

NEAR = 0.7
"""How alike, from 0 to 1, a misspelt name is at least."""


def refuse_misspelt_data(data: Mapping[str, str]) -> None:
    """``UsageError`` for a set of ``--data`` whose name is that of a public set but for case or a few letters."""
    for name in data:
        if name in data_sets():
            continue
        if hint := twin(name, data_sets()):
            raise UsageError(f"--data {name}=...: no public set is called {name!r}{hint}")
        begun = [known for known in data_sets() if len(name) > 3 and known.startswith(name.strip().casefold())]
        near = begun[0] if begun else nearest(name, data_sets(), NEAR)
        if near is not None:
            raise UsageError(f"--data {name}=...: no public set is called {name!r}; did you mean {near!r}?")


@pytest.hookimpl(tryfirst=True)
def pytest_lm_audit_planned(session: pytest.Session) -> None:
    """Before a plan is written: warn of options that no selected case reads; of several workers, the first says it."""
    config = session.config
    if getattr(config, "workerinput", {}).get("workerid", "gw0") != "gw0":
        return
    cases = [item for item in getattr(session, "items", ()) if is_audit_case(item)]
    if not cases:  # a controller of workers
        return
    try:
        _tell(config, cases)
    except pytest.UsageError as error:
        if hasattr(config, "workeroutput"):  # xdist keeps why a worker ended before its first case.
            config.workeroutput[REFUSED] = str(error)
        raise


def _tell(config: pytest.Config, cases: Sequence[pytest.Item]) -> None:
    audit = audit_session(config)
    options, path = audit.options, str(config.getoption("lm_audit_gates"))
    refuse_contradictory_gates(audit.gates, cases, path)
    _refuse_unknown_data(options.data, cases)
    lines = without_effect(config, options, {audit_of(item) for item in cases})
    lines += gates_in_vain(audit.gates, cases, path, whole=not config.getoption("lm_audit_shard"))
    for line in (*lines, *unknown_windows(cases, options)):
        try:
            warnings.warn(line, DataWarning, stacklevel=1)
        except DataWarning as error:  # -W error
            raise pytest.UsageError(str(error)) from error


def _refuse_unknown_data(data: Mapping[str, str], cases: Iterable[pytest.Item]) -> None:
    """``pytest.UsageError`` for a set that no audit declares, where all cases come with the package: none reads it.

    Cases of one's own may read a set of any name, which is a warning then.
    """
    unknown = next((name for name in data if name not in data_sets()), None)
    if unknown is not None and all(is_shipped(Path(item.path)) for item in cases):
        raise pytest.UsageError(f"{_unknown_set(unknown)}; no case that is selected reads it")


def _unknown_set(name: str) -> str:
    return f"--data {name}=...: no audit here knows a set of that name; public sets are {', '.join(data_sets())}"


def without_effect(config: pytest.Config, options: RunOptions, selected: set[str | None]) -> list[str]:
    """One line for each option given whose audit is not among the ``selected``, and for other options in vain."""
    found = []
    for option in audit_options():
        owners = option_owners()[option.name]
        value = options.audit.get(option.name)
        if value not in (None, [], option.default) and not owners & selected:
            found.append(f"{option.flag} does nothing: no case of {' or '.join(sorted(owners))} is selected")
    for name in options.data:
        audit = data_sets().get(name)
        if audit is None:
            found.append(_unknown_set(name))
        elif audit not in selected:
            found.append(f"--data {name}=... does nothing: no case of {audit} is selected")
    found += unknown_templates(options)
    if options.models and all(is_endpoint(model.spec) for model in options.models):
        loading = {"--device-map": options.device_map, "--batch-tokens": options.batch_tokens}
        for flag, value in (loading | {"--packed-weights": options.packed_weights}).items():
            if value is not None:
                found.append(f"{flag} does nothing: every model of this run is served, and its server decides")
    if not any(is_endpoint(model.spec) for model in options.models):
        found += [f"{flag} does nothing: no model of this run is served" for flag in _SERVED if is_given(config, flag)]
    if config.getoption("lm_audit_ray", None) is None and not hasattr(config, "workerinput"):
        found += [f"{flag} does nothing without --ray" for flag in _ON_RAY if is_given(config, flag)]
    if not config.getoption("lm_audit_gates"):
        for flag in ("--undecided", "--report-only"):
            if is_given(config, flag):
                found.append(f"{flag} does nothing without --gates")
    return found


_SERVED = ("--concurrency", "--request-timeout", "--max-tokens-spent", "--allow-insecure", "--reuse-answers")
_ON_RAY = ("--ray-timeout", "--ray-workers", "--gpus-per-worker", "--cpus-per-worker", "--ray-ship")
