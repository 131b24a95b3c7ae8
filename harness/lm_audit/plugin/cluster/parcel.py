"""What travels to the workers: this package, the code that the cases reach, their data, and files that options name.

Weights stay where they are: a worker looks for them in its own hub cache, or in a shared folder.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import lm_audit
from lm_audit.code_version import reachable
from lm_audit.errors import UsageError

LIMIT = 400 << 20
"""Bytes that a parcel holds at most; Ray takes 500 MiB."""

_SKIPPED = {"__pycache__", ".git", ".venv", "site-packages", "node_modules", "reports"}
_CODE = (".py", ".pyc")
_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
_NAMED = "_named_files"


@dataclass(frozen=True)
class Parcel:
    """``working`` becomes the workers' rootdir, ``package`` is this package; ``named`` as in ``Order``."""

    working: Path
    package: Path
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes in all."""
        folders = (self.working, self.package)
        return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def pack(config: pytest.Config, items: Iterable[pytest.Item], values: Iterable[Any], folder: Path) -> Parcel:
    """Copy into ``folder`` what the items need; ``values`` are the values of options, which may name files.

    Raises ``UsageError`` where it is more than Ray takes.
    """
    working, package = folder / "project", folder / "package" / "lm_audit"
    working.mkdir(parents=True)
    root = config.rootpath.resolve()
    for source in _project_files(config, list(items), root):
        _copy(source, working / source.relative_to(root))
    ours = Path(lm_audit.__file__).resolve().parent
    for source in _all_files(ours):
        _copy(source, package / source.relative_to(ours))
    parcel = Parcel(working, package, _named_files(values, root, config.invocation_params.dir, working))
    if parcel.size > LIMIT:
        largest = max((path for path in working.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        raise UsageError(
            f"--ray: what the workers need is {parcel.size >> 20} MiB, more than the {LIMIT >> 20} MiB that "
            f"travel; the largest file is {largest.relative_to(working)}; put it "
            "outside of the rootdir, where every node sees it"
        )
    return parcel


def _project_files(config: pytest.Config, items: list[pytest.Item], root: Path) -> Iterator[Path]:
    wanted: set[Path] = set()
    for path in {item.path.resolve() for item in items}:
        wanted |= {file.resolve() for file in reachable(path, root)}
        if path.is_relative_to(root):
            wanted |= {file for file in path.parent.iterdir() if _is_data(file)}
    # A worker collects what the caller has: also files of which no case was selected.
    for path in _imported(root):
        wanted |= {file.resolve() for file in reachable(path, root)}
        if path.name.startswith("test_") or path.stem.endswith("_test"):
            wanted |= {file for file in path.parent.iterdir() if _is_data(file)}
    if config.inipath is not None:
        wanted.add(config.inipath.resolve())
    wanted |= set(_all_files(root / "fixtures"))
    for name in config.getoption("lm_audit_ray_ship") or ():
        wanted |= _shipped(root, name)
    ours = Path(lm_audit.__file__).resolve().parent
    yield from sorted(path for path in wanted if path.is_relative_to(root) and not path.is_relative_to(ours))


def _imported(root: Path) -> Iterator[Path]:
    """The project's modules that collection has imported, by whatever way."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            path = Path(file).resolve()
            if path.is_relative_to(root) and _SKIPPED.isdisjoint(path.relative_to(root).parts):
                yield path


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix not in (*_CODE, *_WEIGHTS) and not path.name.startswith(".")


def _shipped(root: Path, name: str) -> set[Path]:
    path = (root / name).resolve()
    if not path.exists() or not path.is_relative_to(root):
        raise UsageError(f"--ray-ship {name!r}: no such file or folder below {root}")
    return {path} if path.is_file() else set(_all_files(path))


def _all_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix != ".pyc" and _SKIPPED.isdisjoint(path.relative_to(folder).parts):
            yield path


def _named_files(values: Iterable[Any], root: Path, folder: Path, working: Path) -> dict[str, str]:
    """Copy the files that options name; those below the rootdir keep their place, and what names them its spelling."""
    named: dict[str, str] = {}
    for text in _texts(values):
        path = _path(text, folder)
        if path is None or text in named or _holds_weights(path):
            continue
        inside = path.is_relative_to(root)
        place = path.relative_to(root).as_posix() if inside else f"{_NAMED}/{len(named)}/{path.name}"
        for file in [path] if path.is_file() else _all_files(path):
            target = working / place
            _copy(file, target if path.is_file() else target / file.relative_to(path))
        if not inside or Path(text).is_absolute():
            named[text] = place
    return named


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _texts(value)
        elif isinstance(value, str) and value:
            yield value.rpartition("=")[2]


def _path(text: str, folder: Path) -> Path | None:
    try:
        path = (folder / text).resolve()
        return path if path.exists() and path not in (folder.resolve(), *folder.resolve().parents) else None
    except (OSError, ValueError):
        return None


def _holds_weights(path: Path) -> bool:
    files = [path] if path.is_file() else path.rglob("*")
    return any(file.suffix in _WEIGHTS for file in files)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
