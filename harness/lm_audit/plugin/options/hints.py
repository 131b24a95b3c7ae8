"""What is meant by a word of the command line that pytest does not know: an option, or a marker behind ``-m``.

Nothing is said of a call that pytest understands, nor of one that has nothing to do with audits.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence

import pytest

from lm_audit.plugin.audit_cases.markers import AUDITS, MARKERS
from lm_audit.plugin.compat import (
    option_names,
    refuses_unknown_markers,
    tell_beside_usage_errors,
    unknown_markers,
)
from lm_audit.plugin.options.audit_options import audit_names
from lm_audit.plugin.options.naming import PREFIX, flags
from lm_audit.shared.number_checks import nearest

SHORT_NAMES = "lm_audit.plugin.short_options"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None]:
    """Once all options are declared."""
    yield
    prepare_refusal(early_config, args)


def prepare_refusal(config: pytest.Config, arguments: Sequence[str]) -> None:
    """Have pytest, if it refuses unknown options, say which were meant."""
    told = list(_options_meant(config, arguments))
    if told:
        tell_beside_usage_errors(config, "lm-audit", "; ".join(told))


def _options_meant(config: pytest.Config, arguments: Sequence[str]) -> Iterable[str]:
    known = option_names(config)
    short = config.pluginmanager.has_plugin(SHORT_NAMES)
    arguments = [word for word in map(str, arguments) if word.startswith("--") and len(word) > 2]
    unknown = dict.fromkeys(word.partition("=")[0] for word in arguments)
    for word in (word for word in unknown if word not in known):
        long = PREFIX + word.removeprefix("--")
        if not short and word in flags():
            yield f"{word} is {long} here; the short names come with lm-audit run, or with {_PLUGINS} in the conftest"
        elif near := nearest(word, known, 0.7) if short or word.startswith(PREFIX) else None:
            yield f"{word}: did you mean {near}?"


_PLUGINS = f'pytest_plugins = ("{SHORT_NAMES}",)'


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a misspelt marker before workers start: they would all end at it, and xdist with a traceback."""
    config = session.config
    if hasattr(config, "workerinput") or not refuses_unknown_markers(config):
        return
    meant = _markers_meant(config)
    if any(meant.values()) or (meant and config.pluginmanager.hasplugin("dsession")):
        raise pytest.UsageError(_told(config, meant))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int | pytest.ExitCode, config: pytest.Config
) -> None:
    """Where pytest takes any word for a marker: what was meant by those that none bears."""
    meant = _markers_meant(config)
    if any(meant.values()) or (meant and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED):
        terminalreporter.write_line(_told(config, meant), yellow=True)


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
