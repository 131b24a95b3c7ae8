"""The files that an eval's code read while its cases were measured: on record with a digest.

Resuming looks at them again (:mod:`lm_audit.plugin.record.earlier`).

What no source names (data beside an eval, a file that another one names, a helper that is loaded by its path) is known
only when it was read. It is told case by case as it is first seen; what one case read another may use from memory, so
that a file counts for all cases of its eval file in the session.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pytest

from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.models.loading.identity.spec_identity import file_state
from lm_audit.plugin.record.audit_session import AuditSession
from lm_audit.plugin.record.fingerprints import item_sources
from lm_audit.shared.reached.opened import files_read_by

_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")


def newly_read(item: pytest.Item, session: AuditSession) -> dict[str, str]:
    """Files that the case's code has read and no case of its file has told yet, by name, with a digest of each."""
    told, since = session.extra.setdefault("read", {}).get(item.path, (set(), 0))
    code = item_sources(item)
    files, since = files_read_by(code, since)
    session.extra["read"][item.path] = told, since
    found = {}
    for path in files:
        if path in told or path.resolve() in code or _is_made(path, item.config, session):
            continue
        told.add(path)
        name = _name(path, item.config.rootpath)
        if name is not None and not (session.planned and Path(name).is_absolute()):  # Another machine's paths.
            found[name] = file_state(str(path))
    return found


def _is_made(path: Path, config: pytest.Config, session: AuditSession) -> bool:
    """Whether a file is no input: a run's own, a cache's, weights (which the fingerprint tells), a tool's."""
    below = Path(_name(path, config.rootpath) or path)
    hidden = any(part.startswith(".") for part in below.parts)
    return hidden or path.suffix in _WEIGHTS or any(path.is_relative_to(place) for place in _places(config, session))


def _name(path: Path, root: Path) -> str | None:
    """How a file is told: from the root; by its own path outside of it, but for what is there for the moment only."""
    for one, top in ((path, root), (path.resolve(), root.resolve())):
        if one.is_relative_to(top):
            return one.relative_to(top).as_posix()
    return None if path.resolve().is_relative_to(Path(gettempdir()).resolve()) else str(path)


def _places(config: pytest.Config, session: AuditSession) -> list[Path]:
    """Folders of which nothing is an input; one that holds the project is none of them."""
    emptied = getattr(config.option, "basetemp", None)
    places = [session.folder.path.parent, cache_dir(), *([Path(emptied).resolve()] if emptied else [])]
    return [place for place in places if not config.rootpath.is_relative_to(place)]
