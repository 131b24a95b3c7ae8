"""Names that load on first use: those of a package, seen by type checkers and ``dir()``, and those of layers above."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, whose source is ``file``.

    The names are those that the source imports under ``if TYPE_CHECKING:``, so that each stands in one place. A package
    that uses this has no module that bears the name of one of its public functions: importing that module would put it
    in the function's place. Raises, like any module, ``AttributeError`` for another name.
    """

    def getattr_(name: str) -> object:
        home = homes(file).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes(file)})

    return getattr_, dir_


@cache
def homes(file: str) -> Mapping[str, str]:
    """The module of each name that the source ``file`` imports under ``if TYPE_CHECKING:``."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    guarded = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = (node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def from_above(home: str, name: str) -> Any:
    """``name`` of the module ``home`` in a layer above the caller's, looked up when it is needed.

    A record shows itself in a notebook, or as a data frame, through the report; it does not depend on the report.
    """
    return getattr(import_module(home), name)
