"""The files of a project that a run of an eval file can read as code, told from the sources alone."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Container, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lm_audit.shared.reached.package_versions import PACKAGES

_TOLD_OTHERWISE = {"lm_audit", "pytest", "sklearn", *(name.replace("-", "_") for name in PACKAGES)}
"""Modules that are not followed where they lie on the path: this package is hashed whole, of others the version is."""

_INSTALLED = {"site-packages", "dist-packages"}
_SKIPPED = {"__pycache__", ".git", ".venv", "site-packages", "node_modules"}


def forget() -> None:
    """Look at the sources anew: they may have changed since an earlier session of this process."""
    _mentioned.cache_clear()
    _hooked_homes.cache_clear()


def reachable(eval_file: Path, root: Path, known: Container[Path] = (), plugins: Iterable[Path] = ()) -> set[Path]:
    """The files of a project that a run of ``eval_file`` can read as code: itself, conftest files from its folder up to
    ``root``, and whatever these import from the project, at any depth and also inside functions, or name as plugins
    (``pytest_plugins``) or for ``import_module``; so with ``plugins``, which the call of pytest names.

    Files that are ``known`` are neither looked into nor returned.
    """
    found: set[Path] = set()
    waiting = [eval_file, *_conftests(eval_file.parent, root), *plugins]
    while waiting:
        path = waiting.pop()
        if path in found or path in known or not path.is_file():
            continue
        found.add(path)
        if path.is_relative_to(root):
            waiting.append(path.with_name("__init__.py"))
        waiting += _imported(path, _homes(path, eval_file, root))
    return found


def _conftests(folder: Path, root: Path) -> Iterator[Path]:
    for parent in (folder, *folder.parents):
        yield parent / "conftest.py"
        if parent == root:
            return


def _homes(path: Path, eval_file: Path, root: Path) -> list[Path]:
    """The folders in which absolute imports are looked for, as pytest and Python do: the root, the files' own, and of
    their packages those in which they lie (an audit that another distribution installed lies outside of the root).
    """
    return list(dict.fromkeys([path.parent, eval_file.parent, _package_home(path), _package_home(eval_file), root]))


def _package_home(path: Path) -> Path:
    """The folder that holds the outermost package of a file."""
    home = path.parent
    while (home / "__init__.py").is_file() and home != home.parent:
        home = home.parent
    return home


def installed_packages(files: Iterable[Path], eval_file: Path, root: Path) -> set[str]:
    """The names of modules that ``files`` import and that are neither theirs nor Python's own."""
    found = set()
    for path in files:
        homes = _homes(path, eval_file, root)
        for level, name in _mentioned(path):
            if not level and name.partition(".")[0] not in found and not _absolute(name, homes):
                found.add(name.partition(".")[0])
    return found - _TOLD_OTHERWISE - sys.stdlib_module_names


def _imported(path: Path, homes: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for level, name in _mentioned(path):
        if not level:
            found += _absolute(name, homes)
        elif level <= len(path.parents):
            found += _module_files(path.parents[level - 1], name)
    return found


@cache
def _mentioned(path: Path) -> tuple[tuple[int, str], ...]:
    """The modules that a source imports, with the dots before a relative name, and those that it names as text."""
    if path.suffix != ".py":
        return ()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):  # It cannot be imported either.
        return ()
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name.name}" if node.module else name.name for name in node.names]
            found += [(node.level, name) for name in names]
    return tuple(dict.fromkeys([*found, *((0, name) for name in _named_modules(tree))]))


def _absolute(name: str, homes: Iterable[Path]) -> list[Path]:
    """The files that importing ``name`` reads: in ``homes``, and where none of these has it, in the folders that
    somebody put on the path (``pythonpath`` in pytest's file, ``PYTHONPATH``, an editable install).

    Only then: pytest puts the folders of other eval files there too, and which ones hangs on what was selected.
    """
    found = [file for home in homes for file in _module_files(home, name)]
    top = name.partition(".")[0]
    if found or top in _TOLD_OTHERWISE:
        return found
    given = (*_given_homes(tuple(sys.path)), *_hooked_homes(top))
    return next((files for home in given if (files := [*_module_files(home, name)])), [])


@cache
def _hooked_homes(top: str) -> tuple[Path, ...]:
    """The folder in which an import hook finds a module that no folder of the path has: that of an editable install."""
    try:
        spec = None if top in sys.stdlib_module_names else find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return ()
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else []
    return _given_homes(tuple(str(Path(place).parent) for place in places[:1] if Path(place).is_absolute()))


@cache
def _given_homes(places: tuple[str, ...]) -> tuple[Path, ...]:
    """The folders of ``places`` whose sources no version tells apart: not Python's library, no installed packages."""
    library = {Path(path).resolve() for name, path in sysconfig.get_paths().items() if name.endswith("lib")}
    folders = dict.fromkeys(Path(place).resolve() for place in places if place)
    return tuple(
        folder
        for folder in folders
        if folder.is_dir()
        and _INSTALLED.isdisjoint(folder.parts)
        and not any(folder.is_relative_to(one) for one in library)
    )


def _named_modules(tree: ast.AST) -> Iterator[str]:
    """Modules that a file names as text: its ``pytest_plugins``, and what ``import_module`` and the like are given."""
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "pytest_plugins" for target in targets):
                parts = [node.value]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if called in ("import_module", "importorskip", "__import__"):
                parts = node.args[:1]
        for part in parts:
            texts = [one.value for one in ast.walk(part) if isinstance(one, ast.Constant)]
            yield from (text for text in texts if isinstance(text, str) and text.replace(".", "").isidentifier())


def _module_files(home: Path, name: str) -> Iterator[Path]:
    """The files that importing ``name`` reads below ``home``: packages on the way, and the module."""
    place = home
    for part in name.split("."):
        place = place / part
        if not _SKIPPED.isdisjoint(place.parts[len(home.parts) :]):
            return
        for file in (place.with_name(f"{part}.py"), place / "__init__.py"):
            if file.is_file():
                yield file.resolve()
