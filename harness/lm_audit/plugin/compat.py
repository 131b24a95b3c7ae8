"""Parts of pytest and pytest-xdist that they do not promise to keep: every use of them goes through here.

Seen to work with pytest 9.2 and pytest-xdist 3.8. The scheduling protocol that ``parallel.scheduler`` implements is
documented by xdist (``xdist.scheduler.protocol``) and changes with its versions too. ``make test-latest`` tells whether
newer ones still have them.
"""

from __future__ import annotations

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
