"""Parts of pytest and its plugins that they do not promise to keep: every use of them goes through here.

Seen to work with pytest 9.2, pytest-xdist 3.8 and pytest-rerunfailures 16.7. The scheduling protocol that
``parallel.scheduler`` implements is documented by xdist (``xdist.scheduler.protocol``) and changes with its versions
too. ``make test-latest`` tells whether newer ones still have them.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest


def fixture_home(item: pytest.Item, name: str) -> str | None:
    """The module of the fixture that ``item`` gets under ``name``; ``None`` where it asks for none of that name."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get(name, ()) if info is not None else ()
    return str(definitions[-1].func.__module__) if definitions else None


def cursor_column(reporter: Any) -> int:
    """How many characters pytest's terminal reporter has written on the line that the cursor is in."""
    return int(reporter._tw.width_of_current_line)


def tear_down_before(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Have what earlier items set up (modules, classes, their fixtures) torn down as far as ``nextitem`` needs it not.

    pytest does so when an item has run. One that is reported without running leaves it to the plugin that does that.
    """
    state: Any = getattr(item.session, "_setupstate")  # noqa: B009
    state.teardown_exact(nextitem)


def write_through(reporter: Any, wrapper: Callable[[Any], Any]) -> None:
    """Have pytest's terminal reporter write into what ``wrapper`` makes of the file that it writes to."""
    reporter._tw._file = wrapper(reporter._tw._file)


def workers_asked_for(config: pytest.Config) -> int:
    """How many workers xdist will start for this run."""
    from xdist.workermanage import parse_tx_spec_config

    return len(parse_tx_spec_config(config))


def place_for_reruns(config: pytest.Config) -> dict[str, Any]:
    """What pytest-rerunfailures hands to each of xdist's workers, for a session that has a controller of another kind.

    It is where the reruns of crashed workers are counted; here every session has one of its own. The plugin's own hook
    fills it in, since what is handed over has grown with its versions (a port, then a token).
    """
    handed: dict[str, Any] = {}
    if config.pluginmanager.hasplugin("rerunfailures"):
        with contextlib.suppress(ImportError, AttributeError, OSError):
            from pytest_rerunfailures import ServerStatusDB, XDistHooks

            counts = ServerStatusDB()
            counts.sock.listen()  # Its own thread does, but maybe after this session has called.
            node = SimpleNamespace(workerinput=handed, config=SimpleNamespace(failures_db=counts))
            XDistHooks().pytest_configure_node(node)
    return handed


@contextlib.contextmanager
def with_options(arguments: Sequence[str]) -> Iterator[pytest.Config]:
    """A configuration with the options of all plugins that a call would load; conftests are not read.

    Raises ``pytest.UsageError`` or ``ImportError`` where pytest itself would refuse the call.
    """
    from _pytest.config import get_config

    config = get_config(arguments)
    try:
        config.hook.pytest_addhooks.call_historic(kwargs={"pluginmanager": config.pluginmanager})
        config.pluginmanager.consider_preparse(list(arguments), exclude_only=False)
        if not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            config.pluginmanager.load_setuptools_entrypoints("pytest11")
        yield config
    finally:
        config._ensure_unconfigure()


def places_named(arguments: Sequence[str]) -> list[str]:
    """The words among a call's arguments that name what to collect; none where pytest will refuse the call.

    A value that follows an option of a conftest's is taken for one.
    """
    try:
        with with_options(arguments) as config:
            return list(config._parser.parse_known_args(arguments, namespace=copy.copy(config.option)).file_or_dir)
    except (pytest.UsageError, ImportError):
        return []


def option_names(config: pytest.Config) -> set[str]:
    """All options that this call knows, as they are written."""
    return set(config._parser._opt2dest)


def tell_beside_usage_errors(config: pytest.Config, name: str, told: str) -> None:
    """Have pytest say ``name: told`` if it refuses the command line; nothing is said otherwise."""
    config._parser.extra_info[name] = told


def unknown_markers(config: pytest.Config) -> list[str]:
    """The words of ``-m`` that no marker registered so far has; none where pytest cannot read the expression."""
    from _pytest.mark.expression import Expression

    try:
        words = Expression.compile(config.option.markexpr or "").idents()
    except SyntaxError:
        return []
    return sorted(words - {marker.name for marker in config._iter_registered_markers()})


def unreadable_expression(config: pytest.Config) -> str | None:
    """What is wrong with ``-m`` or ``-k``, which pytest itself says when every case has been collected."""
    from _pytest.mark.expression import Expression

    for flag, text in (("-m", config.option.markexpr), ("-k", config.option.keyword)):
        try:
            Expression.compile(text or "")
        except SyntaxError as error:
            return f"Wrong expression passed to '{flag}': {error.text}: at column {error.offset}: {error.msg}"
        except (RecursionError, MemoryError):
            return f"Wrong expression passed to '{flag}': it is nested too deeply"
    return None


def refuses_unknown_markers(config: pytest.Config) -> bool:
    """Whether pytest refuses an ``-m`` with such a word."""
    strict = config.getini("strict_markers")
    return bool(config.getini("strict") if strict is None else strict)


def verbosity(config: pytest.Config) -> int:
    """How often ``-v`` was given, less how often ``-q``: options of the terminal's plugin, which a call may leave out
    (``-p no:terminal``).
    """
    return int(config.getoption("verbose", 0))
