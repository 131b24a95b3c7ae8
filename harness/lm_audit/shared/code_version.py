"""code_version: one name for the code that a number was made with, by which caches, resume and merge tell it apart.

It hashes the sources that a case can reach (the whole package with its data, the eval file, what that imports from the
same project, and the conftest files above it) and the versions of the packages beneath. A commit would not do: it says
nothing about changes that are not committed, and a cache outlives it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import lm_audit
from lm_audit.shared.reached import package_versions
from lm_audit.shared.reached import sources as reached
from lm_audit.shared.reached.package_versions import versions, versions_of_modules

_SKIPPED = {"__pycache__", ".git", ".venv", "site-packages", "node_modules"}


@cache
def code_version(
    eval_file: str | Path | None = None, root: str | Path | None = None, plugins: tuple[Path, ...] = ()
) -> str:
    """A hash (16 hex digits) of the package and the versions beneath it, and of what an eval file reaches in its
    project: sources, and the versions of what else they import.

    ``root`` is the project's root, where the search for conftest files and imported modules ends; ``plugins`` are the
    files of those that the call of pytest names. Computed once a process, since that is the code that the process runs;
    :func:`forget` looks anew.
    """
    lines = [package_digest(), *_told(versions())]
    if eval_file is not None:
        path = Path(eval_file).resolve()
        top = Path(root).resolve() if root is not None else path.parent
        files = sources(path, top, plugins)
        lines += [f"{name} {_file_digest(file)}" for name, file in _named(files, top)]
        lines += _told(versions_of_modules(reached.installed_packages(files, path, top)))
    return _digest(lines)


@cache
def sources(eval_file: Path, root: Path, plugins: tuple[Path, ...] = ()) -> frozenset[Path]:
    """:func:`~lm_audit.shared.reached.sources.reachable`, looked for once a process."""
    return frozenset(reached.reachable(eval_file, root, plugins=plugins))


@cache
def made_by(*parts: str, packages: tuple[str, ...] | None = None) -> str:
    """A hash (16 hex digits) of parts of this package and of the versions beneath (those of ``packages``, or all).

    What is kept on disk for later processes has it in its name, so that no cache outlives the code that filled it.
    """
    found = versions()
    return _digest([package_digest(*parts), *_told({one: found[one] for one in packages or found if one in found})])


@cache
def package_digest(*parts: str) -> str:
    """A hash of this package's sources and data; with ``parts`` (``"models"``, ``"audits/privacy"``) of those alone."""
    found = []
    for folder in {Path(folder).resolve() for folder in lm_audit.__path__}:
        for name, path in _files(folder):
            if not parts or any(_within(name, part) for part in parts):
                found.append(f"{name} {_file_digest(path)}")
    return _digest(sorted(found))


def forget() -> None:
    """Look at the files anew: they may have changed since an earlier session of this process."""
    for remembered in (code_version, sources, made_by, package_digest, _file_digest):
        remembered.cache_clear()
    package_versions.forget()
    reached.forget()


def _told(numbers: Mapping[str, str]) -> list[str]:
    return [f"{name} {number}" for name, number in sorted(numbers.items())]


def _named(files: Iterable[Path], root: Path) -> list[tuple[str, Path]]:
    """Files by a name that does not hang on where the project lies; the package's own are hashed already."""
    homes = [Path(folder).resolve() for folder in lm_audit.__path__]
    ours = [file for file in files if not any(file.is_relative_to(home) for home in homes)]
    return sorted(
        (file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name, file) for file in ours
    )


def _within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}/")


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files below a folder, each with its name from there; every process of every run asks, so paths are texts."""
    for place, folders, names in os.walk(folder):
        folders[:] = {*folders} - _SKIPPED
        within = os.path.relpath(place, folder).replace(os.sep, "/")
        for name in names:
            path = os.path.join(place, name)
            if not name.endswith(".pyc") and name not in _SKIPPED and os.path.isfile(path):
                yield name if within == "." else f"{within}/{name}", Path(path)


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]
