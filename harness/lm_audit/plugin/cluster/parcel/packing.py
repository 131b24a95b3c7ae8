"""What travels to the workers: this package, the code that the cases reach, their data, and files that options name.

Weights stay where they are: a worker looks for them in its own hub cache, or in a shared folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import lm_audit
from lm_audit.errors import UsageError
from lm_audit.plugin.cluster.parcel.named_files import NAMED, NamedPath, named_paths
from lm_audit.plugin.cluster.parcel.project_files import all_files, project_files
from lm_audit.plugin.options.run_options import RunOptions

LIMIT = 400 << 20
"""Bytes that a parcel holds at most; Ray takes 500 MiB."""

MOST_FILES = 20_000


@dataclass(frozen=True)
class Parcel:
    """``working`` becomes the workers' rootdir, ``package`` is this package; ``named`` as in ``Order``."""

    working: Path
    package: Path
    named: Mapping[str, str] = field(default_factory=dict)


def pack(config: pytest.Config, items: Iterable[pytest.Item], options: RunOptions, folder: Path) -> Parcel:
    """Copy into ``folder`` what the items need, and what ``options`` name.

    Raises ``UsageError``, before anything is copied, where that is more than travels or looks like a key.
    """
    root, called = config.rootpath.resolve(), config.invocation_params.dir
    working, package = folder / "project", folder / "package" / "lm_audit"
    load = _Load()
    for source in project_files(config, items, root):
        load.add(source, working / source.relative_to(root), "the project")
    ours = Path(lm_audit.__file__).resolve().parent
    for source in all_files(ours):
        load.add(source, package / source.relative_to(ours), "this package")
    named = {}
    for number, entry in enumerate(named_paths(options, called)):
        place = _place(entry, number, root)
        if entry.travels:
            for source, below in entry.files():
                load.add(source, working / place / below, f"{entry.option} {entry.text}")
        # A relative spelling leads to its file on a worker too where pytest was called within the rootdir.
        stays = entry.travels and not Path(entry.text).is_absolute() and called.resolve().is_relative_to(root)
        if not (stays and entry.path.is_relative_to(root) and not entry.text.startswith("~")):
            named[entry.text] = ":".join([place if entry.travels else str(entry.path), *entry.parts])
    working.mkdir(parents=True)
    load.copy()
    return Parcel(working, package, named)


def _place(entry: NamedPath, number: int, root: Path) -> str:
    if entry.path.is_relative_to(root):
        return entry.path.relative_to(root).as_posix()
    return f"{NAMED}/{number}/{entry.path.name}"


class _Load:
    """What is to be copied, counted before it is."""

    def __init__(self) -> None:
        self._files: dict[Path, Path] = {}
        self._size = 0
        self._largest = (0, Path(), "")

    def add(self, source: Path, target: Path, whose: str) -> None:
        if target in self._files:
            return
        size = source.stat().st_size
        self._files[target] = source
        self._size += size
        self._largest = max(self._largest, (size, source, whose))
        if self._size <= LIMIT and len(self._files) <= MOST_FILES:
            return
        size, source, of = self._largest
        raise UsageError(
            f"--ray: more than {LIMIT >> 20} MiB or {MOST_FILES} files would travel to the workers ({target.name} of "
            f"{whose} is one too many); the largest is {source} ({size >> 20} MiB, of {of}); put it where every node "
            "sees it, outside of the rootdir, and name it in no option that sends files"
        )

    def copy(self) -> None:
        for target, source in self._files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
