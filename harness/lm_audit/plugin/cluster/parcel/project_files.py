"""Which files of the project the workers need: the code that a run reaches, the data beside it, and its fixtures."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import lm_audit
from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.markers import audit_of
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.cluster.parcel.secret_files import refuse_secret, what_secret
from lm_audit.shared.reached.sources import reachable

_SKIPPED = {"__pycache__", ".git", ".venv", "site-packages", "node_modules", "reports"}
_CODE = (".py", ".pyc")
WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
FIXTURES = "fixtures"


def project_files(config: pytest.Config, items: Iterable[pytest.Item], root: Path) -> list[Path]:
    """Resolved paths below ``root``, sorted; ``UsageError`` for a ``--ray-ship`` that names nothing there.

    The package itself is left out, wherever it lies.
    """
    ours = Path(lm_audit.__file__).resolve().parent
    items = list(items)
    wanted: set[Path] = set()
    for path in {item.path.resolve() for item in items}:
        wanted |= {file.resolve() for file in reachable(path, root, wanted)}
        if path.is_relative_to(root):
            wanted |= set(_data_beside(path))
    # A worker collects what the caller has: also files of which no case was selected.
    for path in _imported(root, ours):
        wanted |= {file.resolve() for file in reachable(path, root, wanted)}
        if path.name.startswith("test_") or path.stem.endswith("_test"):
            wanted |= set(_data_beside(path))
    if config.inipath is not None:
        wanted.add(config.inipath.resolve())
    audits = {audit_of(item) for item in items if is_audit_case(item)}
    wanted |= set(_fixtures(root, [path for path in wanted if path.suffix == ".py"], {name for name in audits if name}))
    for name in config.getoption("lm_audit_ray_ship") or ():
        wanted |= _shipped(root, name)
    return sorted(path for path in wanted if path.is_relative_to(root) and not path.is_relative_to(ours))


def all_files(folder: Path) -> Iterator[Path]:
    """The files of a folder and those below it, in order, without what is made from others or belongs to tools."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix != ".pyc" and _SKIPPED.isdisjoint(path.relative_to(folder).parts):
            yield path


def _imported(root: Path, ours: Path) -> Iterator[Path]:
    """The project's modules that collection has imported, by whatever way."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            path = Path(file).resolve()
            if path.is_relative_to(ours) or not path.is_relative_to(root):
                continue
            if _SKIPPED.isdisjoint(path.relative_to(root).parts):
                yield path


def _data_beside(path: Path) -> Iterator[Path]:
    """Data in the folder of a test file. What looks like a key stays: nobody has named it."""
    for file in path.parent.iterdir():
        usual = file.is_file() and file.suffix not in (*_CODE, *WEIGHTS) and not file.name.startswith(".")
        if usual and what_secret(file) is None:
            yield file


def _fixtures(root: Path, code: Iterable[Path], audits: set[str]) -> Iterator[Path]:
    """What of ``fixtures/`` is read: the parts that the code names, and those of the audits that run.

    Code that speaks of the folder without naming any part of it may read all of it.
    """
    folder = root / FIXTURES
    parts = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    wanted = set(parts) & audits
    for words in map(_path_words, code if parts else ()):
        named = words & set(parts)
        wanted |= named or (set(parts) if FIXTURES in words else set())
    for name in sorted(wanted):
        for file in [parts[name]] if parts[name].is_file() else all_files(parts[name]):
            refuse_secret(file, f"{FIXTURES}/{file.relative_to(folder).as_posix()}")
            yield file.resolve()


def _path_words(path: Path) -> set[str]:
    """The components of all paths that strings of a source may be, docstrings left out."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    )  # fmt: skip
    return {word for text in strings for word in text.replace("\\", "/").split("/")}


def _shipped(root: Path, name: str) -> set[Path]:
    path = (root / name).resolve()
    if not path.exists() or not path.is_relative_to(root):
        raise UsageError(f"--ray-ship {name!r}: no such file or folder below {root}")
    if path.is_file():
        return {path}
    files = set(all_files(path))
    for file in files:
        refuse_secret(file, f"--ray-ship {name}")
    return files
