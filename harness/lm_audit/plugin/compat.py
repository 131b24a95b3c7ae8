"""Parts of pytest and its plugins that they do not promise to keep: every use of them goes through here.

Seen to work with pytest 9.2, pytest-xdist 3.8 and pytest-rerunfailures 16.7. The scheduling protocol that
``parallel.scheduler`` implements is documented by xdist (``xdist.scheduler.protocol``) and changes with its versions
too. ``make test-latest`` tells whether newer ones still have them.
"""

from __future__ import annotations

import contextlib
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
