"""What is meant by a word of the command line that pytest does not know: an option, or a marker behind ``-m``.

Nothing is said of a call that pytest understands, nor of one that has nothing to do with audits.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from lm_audit.plugin.audit_cases.markers import AUDITS, MARKERS
from lm_audit.plugin.compat import (
    option_names,
    refuses_unknown_markers,
    tell_beside_usage_errors,
    unknown_markers,
    unreadable_expression,
)
from lm_audit.plugin.options.audit_options import audit_names
from lm_audit.plugin.options.naming import PREFIX, flags
from lm_audit.shared.number_checks import nearest
from lm_audit.shared.textfiles import is_there
from lm_audit.shared.visible import visible

SHORT_NAMES = "lm_audit.plugin.short_options"
MOST_WORKERS = 1024
"""Each is a process with libraries of its own; xdist would begin to start any number."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None]:
    """Once all options are declared."""
    yield
    prepare_refusal(early_config, args)


def prepare_refusal(config: pytest.Config, arguments: Sequence[str]) -> None:
    """Have pytest, if it refuses unknown options, say which were meant; refuse more workers than any machine has."""
    _refuse_workers(getattr(config, "known_args_namespace", None))
    told = list(_options_meant(config, arguments))
    if told:
        tell_beside_usage_errors(config, "lm-audit", "; ".join(told))


def _refuse_workers(options: argparse.Namespace | None) -> None:
    """``UsageError`` for numbers of workers and of restarts that xdist takes, and ends at or begins to start.

    ``options``: those that were read before any conftest, None where nothing was.
    """
    workers, restarts = getattr(options, "numprocesses", None), getattr(options, "maxworkerrestart", None)
    if isinstance(workers, int) and workers > MOST_WORKERS:
        raise pytest.UsageError(f"-n {workers!s:.40}: at most {MOST_WORKERS} workers; -n auto takes as many as fit")
    if restarts is not None and not re.fullmatch(r"-?\d{1,9}", str(restarts), re.ASCII):
        raise pytest.UsageError(f"--max-worker-restart {restarts!r:.40} is not a whole number")


def _options_meant(config: pytest.Config, arguments: Sequence[str]) -> Iterable[str]:
    known = option_names(config)
    short = config.pluginmanager.has_plugin(SHORT_NAMES)
    words = list(map(str, arguments))
    options = dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2)
    unknown = [word for word in options if word not in known]
    ours = [word for word in unknown if not short and word in flags()]
    if ours:
        long = ", ".join(f"{word} is {PREFIX}{word.removeprefix('--')}" for word in ours)
        yield f"{long} here; the short names come with lm-audit run, or with {_PLUGINS} in the conftest"
    for word, behind in pairwise(words):
        if word in ours and is_there(Path(behind)):
            yield (
                f"a path behind an option that it does not know yet is one of tests for pytest, which then looks for "
                f"the conftest there: write {word}={behind}"
            )
    for word in unknown:
        near = nearest(word, known, 0.7) if word not in ours and (short or word.startswith(PREFIX)) else None
        if near:
            yield f"{word}: did you mean {near}?"


_PLUGINS = f'pytest_plugins = ("{SHORT_NAMES}",)'


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a misspelt marker or file before workers start: they would all end at it, and xdist keeps the reason.

    A selection that cannot be read is refused before cases are collected, which may take long.
    """
    config = session.config
    if hasattr(config, "workerinput"):
        return
    refuse_absent_places(config)
    if told := unreadable_expression(config):
        raise pytest.UsageError(visible(told))
    if not refuses_unknown_markers(config):
        return
    meant = _markers_meant(config)
    if any(meant.values()) or (meant and config.pluginmanager.hasplugin("dsession")):
        raise pytest.UsageError(_told(config, meant))


def refuse_absent_places(config: pytest.Config) -> None:
    """What pytest says itself of a file that is not there, but not where workers collect: the call would just end."""
    if not _with_workers(config) or config.known_args_namespace.pyargs:
        return
    for place in config.args:
        if not is_there(config.invocation_params.dir / place.partition("::")[0]):
            raise pytest.UsageError(f"file or directory not found: {place}")


def _with_workers(config: pytest.Config) -> bool:
    """Whether workers run a call that asks for audits."""
    return config.pluginmanager.hasplugin("dsession") and config.pluginmanager.has_plugin(SHORT_NAMES)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int | pytest.ExitCode, config: pytest.Config
) -> None:
    """Where pytest takes any word for a marker, what was meant by those that none bears; names that found nothing."""
    meant = _markers_meant(config)
    if any(meant.values()) or (meant and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED):
        terminalreporter.write_line(_told(config, meant), yellow=True)
    named = [place for place in config.args if "::" in place]
    if named and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _with_workers(config):
        names = visible(", ".join(named[:3]))
        terminalreporter.write_line(
            f"no case was found or selected by {names}: with workers pytest does not say which; -n 0 does", yellow=True
        )


def _markers_meant(config: pytest.Config) -> dict[str, str | None]:
    """Unknown words of ``-m`` in a call that asks for audits, with the nearest marker of ours."""
    if not config.pluginmanager.has_plugin(SHORT_NAMES):
        return {}
    return {word: nearest(word, (*_audits(), *MARKERS), 0.6) for word in unknown_markers(config)}


def _told(config: pytest.Config, meant: Mapping[str, str | None]) -> str:
    words = [f"{word!r} (did you mean {near!r}?)" if near else repr(word) for word, near in meant.items()]
    return f"-m {config.option.markexpr!r}: no marker is called {' or '.join(words)}; audits: {', '.join(_audits())}"


def _audits() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*AUDITS, *audit_names())))
