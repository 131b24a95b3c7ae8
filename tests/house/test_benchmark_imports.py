"""What stands outside of the package imports what is there: nobody runs each benchmark after a move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_layers import MODULES

ROOT = Path(__file__).resolve().parents[2]


@cache
def held(module: str) -> frozenset[str]:
    """Names that a module binds or, as text, exports when they are asked for; its sub-modules too."""
    found = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == module}
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return frozenset(found)


def absent(source: str) -> Iterator[str]:
    """What a source imports from the package, or asks of a module imported from it, and the package does not have."""
    nodes = list(ast.walk(ast.parse(source)))
    modules = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in MODULES
    }
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in bound:
            module = modules.get(node.value.id, "")
            if module and not node.attr.startswith("__") and node.attr not in held(module):
                yield f"{module}.{node.attr}"
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "lm_audit" and a.name not in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lm_audit":
            module = str(node.module)
            known = held(module) if module in MODULES else frozenset()
            yield from (f"{module}.{alias.name}" for alias in node.names if alias.name not in known)


@pytest.mark.parametrize("folder", ["benchmarks", "evals", "properties", "tests"])
def test_every_import_from_the_package_is_there(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    missing = {
        str(path.relative_to(ROOT)): found
        for path in files
        if (found := list(absent(path.read_text(encoding="utf-8"))))
    }
    assert not missing


def test_an_import_that_is_not_there_is_seen() -> None:
    source = "from lm_audit.audits.bias import grid_verdict\nfrom lm_audit.nowhere import x\nimport lm_audit.gone\n"
    assert list(absent(source)) == ["lm_audit.audits.bias.grid_verdict", "lm_audit.nowhere.x", "lm_audit.gone"]
    assert list(absent("from lm_audit.stats import Estimate, bootstrap_ci\nimport lm_audit.gates.gate")) == []
    asked = "from lm_audit.audits.needle import controls\ncontrols.{}\n"
    assert list(absent(asked.format("reader_control(0)"))) == ["lm_audit.audits.needle.controls.reader_control"]
    assert list(absent(asked.format("stubs"))) == []
