"""code_version: one name for the code that a number was made with, by which caches, resume and merge tell it apart.

It hashes the sources that a case can reach (the whole package with its data, the eval file, what that imports from the
same project, and the conftest files above it) and the versions of the packages beneath. A commit would not do: it says
nothing about changes that are not committed, and a cache outlives it.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import sys
import sysconfig
from collections.abc import Container, Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import lm_audit

PACKAGES = (
    "torch", "transformers", "tokenizers", "safetensors", "sentencepiece", "gguf", "peft", "trl", "accelerate",
    "datasets", "numpy", "scipy", "statsmodels", "scikit-learn", "pandas", "pyarrow", "huggingface-hub", "opacus",
    "jinja2", "nltk", "rouge-score", "tiktoken", "protobuf", "regex", "mistral-common", "triton", "kernels",
    "flash-attn", "flash-linear-attention", "causal-conv1d", "mamba-ssm", "bitsandbytes", "compressed-tensors",
    "gptqmodel", "autoawq", "optimum", "torchao",
)  # fmt: skip
"""Packages on which a number can hang."""

_TOLD_OTHERWISE = {"lm_audit", "sklearn", *(name.replace("-", "_") for name in PACKAGES)}
"""Modules that are not followed where they lie on the path: this package is hashed whole, of others the version is."""

_INSTALLED = {"site-packages", "dist-packages"}
_SKIPPED = {"__pycache__", ".git", ".venv", "site-packages", "node_modules"}


@cache
def code_version(eval_file: str | Path | None = None, root: str | Path | None = None) -> str:
    """A hash (16 hex digits) of the package and the versions beneath it, and of what an eval file reaches in its
    project.

    ``root`` is the project's root, where the search for conftest files and imported modules ends. Computed once a
    process, since that is the code that the process runs; :func:`forget` looks anew.
    """
    lines = [package_digest(), *(f"{name} {number}" for name, number in sorted(versions().items()))]
    if eval_file is not None:
        path = Path(eval_file).resolve()
        top = Path(root).resolve() if root is not None else path.parent
        lines += [f"{name} {_file_digest(file)}" for name, file in _named(reachable(path, top), top)]
    return _digest(lines)


@cache
def package_digest(*parts: str) -> str:
    """A hash of this package's sources and data; with ``parts`` (``"models"``, ``"audits/privacy"``) of those alone."""
    found = []
    for folder in {Path(folder).resolve() for folder in lm_audit.__path__}:
        for name, path in _files(folder):
            if not parts or any(_within(name, part) for part in parts):
                found.append(f"{name} {_file_digest(path)}")
    return _digest(sorted(found))


@cache
def versions() -> dict[str, str]:
    """The installed versions of :data:`PACKAGES` and of Python."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def forget() -> None:
    """Look at the files anew: they may have changed since an earlier session of this process."""
    for remembered in (code_version, package_digest, versions, _file_digest):
        remembered.cache_clear()


def reachable(eval_file: Path, root: Path, known: Container[Path] = ()) -> set[Path]:
    """The files of a project that a run of ``eval_file`` can read as code: itself, conftest files from its folder up to
    ``root``, and whatever these import from the project, at any depth and also inside functions, or name as plugins
    (``pytest_plugins``) or for ``import_module``.

    Files that are ``known`` are neither looked into nor returned.
    """
    found: set[Path] = set()
    waiting = [eval_file, *_conftests(eval_file.parent, root)]
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


def _imported(path: Path, homes: Iterable[Path]) -> list[Path]:
    if path.suffix != ".py":
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):  # It cannot be imported either.
        return []
    found: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [file for name in node.names for file in _absolute(name.name, homes)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name.name}" if node.module else name.name for name in node.names]
            if 0 < node.level <= len(path.parents):
                found += [file for name in names for file in _module_files(path.parents[node.level - 1], name)]
            else:
                found += [file for name in names for file in _absolute(name, homes)]
    found += [file for name in _named_modules(tree) for file in _absolute(name, homes)]
    return found


def _absolute(name: str, homes: Iterable[Path]) -> list[Path]:
    """The files that importing ``name`` reads: in ``homes``, and where none of these has it, in the folders that
    somebody put on the path (``pythonpath`` in pytest's file, ``PYTHONPATH``, an editable install).

    Only then: pytest puts the folders of other eval files there too, and which ones hangs on what was selected.
    """
    found = [file for home in homes for file in _module_files(home, name)]
    if found or name.partition(".")[0] in _TOLD_OTHERWISE:
        return found
    return next((files for home in _given_homes(tuple(sys.path)) if (files := [*_module_files(home, name)])), [])


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
