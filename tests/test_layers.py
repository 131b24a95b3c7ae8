"""The house's layers: who may import whom, and that nobody imports in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import lm_audit

SOURCE = Path(lm_audit.__file__).parent
MODULES = {
    ".".join(("lm_audit", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
LAYERS = {module.split(".")[1] for module in MODULES if module.count(".") == 1} - {"errors"}
AUDITS = ("bias", "leakage", "needle", "privacy", "faithfulness")


def _statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that runs, in functions too; what only a type checker reads is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from _statements(other)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _statements(child)


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Everything in a module's syntax tree, outer nodes first; read once for all tests of this file."""
    return tuple(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go() -> Iterator[None]:
    """All trees take 150 MB."""
    yield
    nodes.cache_clear()


@cache
def imported(module: str) -> frozenset[str]:
    """The full names that a module imports: of this package its modules, of others whatever is named."""
    found: set[str] = set()
    for statement in _statements(nodes(module)[0]):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif statement.module:
            names = {f"{statement.module}.{alias.name}" for alias in statement.names}
            found |= {name if name in MODULES else statement.module for name in names}
    return frozenset(found - {module})


@pytest.mark.parametrize(
    ("layer", "forbidden"),
    [
        ("shared", (*sorted(LAYERS - {"shared"}), "pytest", "torch", "transformers")),
        ("models", ("audits", "plugin", "report", "runstore", "evidence", "gates", "pytest")),
        ("stats", ("audits", "plugin", "report", "runstore", "models", "evidence", "pytest", "torch", "transformers")),
        ("runstore", ("audits", "plugin", "report", "models", "pytest", "torch")),
        ("audits", ("plugin", "report", "pytest")),
        ("plugin", tuple(f"audits.{audit}" for audit in AUDITS)),
        ("report", (*(f"audits.{audit}" for audit in AUDITS), "torch", "transformers")),
        ("findings", (*(f"audits.{audit}" for audit in AUDITS), "plugin", "report", "pytest", "torch")),
    ],
)
def test_a_layer_knows_nothing_of_those_above_it(layer: str, forbidden: tuple[str, ...]) -> None:
    places = [name for name in MODULES if name == f"lm_audit.{layer}" or name.startswith(f"lm_audit.{layer}.")]
    assert places
    barred = {name if name in ("pytest", "torch", "transformers") else f"lm_audit.{name}" for name in forbidden}
    broken = [
        f"{module} imports {name}"
        for module in places
        for name in imported(module)
        if any(name == bar or name.startswith(f"{bar}.") for bar in barred)
    ]
    assert not broken


@pytest.mark.parametrize("audit", AUDITS)
def test_no_audit_leans_on_another(audit: str) -> None:
    others = tuple(f"lm_audit.audits.{other}" for other in AUDITS if other != audit)
    broken = [
        f"{module} imports {name}"
        for module in MODULES
        if module.startswith(f"lm_audit.audits.{audit}")
        for name in imported(module)
        if name.startswith(others)
    ]
    assert not broken


def test_nobody_imports_in_a_circle() -> None:
    graph = {module: {name for name in imported(module) if name in MODULES} for module in MODULES}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_folder_holds_more_than_an_eye_takes_in() -> None:
    """Files and folders of a folder, but for its ``__init__``: what belongs together gets a folder of its own."""
    folders = {path.parent for path in MODULES.values()}
    crowded = {
        str(folder.relative_to(SOURCE)): len(beside)
        for folder in folders
        if len(beside := [one for one in MODULES.values() if one.parent == folder and one.stem != "__init__"]
               + [one for one in folders if one.parent == folder]) > 17
    }  # fmt: skip
    assert not crowded


def test_modules_bear_names_that_say_what_they_hold() -> None:
    vague = {
        "base", "book", "collect", "common", "helpers", "misc", "notes", "opening", "stuff", "things", "tools", "util",
        "utils", "various",
    }  # fmt: skip
    assert not [module for module in MODULES if module.rpartition(".")[2] in vague]


def _private_names(module: str) -> Iterator[str]:
    """Names with a leading underscore that a module reads from objects that are not its own."""
    tree = nodes(module)
    own = {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {
        node.attr for node in tree if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name) and node.value.id == "self"
    }  # fmt: skip
    own |= {ast.unparse(node.target) for node in tree if isinstance(node, ast.AnnAssign)}
    for node in tree:
        if isinstance(node, ast.Attribute):
            name, of = node.attr, node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr", "setattr")
        ):
            name, of = getattr(node.args[1], "value", ""), node.args[0]
        else:
            continue
        private = isinstance(name, str) and name.startswith("_") and not name.endswith("__")
        if private and name not in own and (owner := ast.unparse(of)) not in ("self", "cls", "os", "sys"):
            yield f"{owner}.{name}"


def test_private_parts_of_others_are_used_in_one_place() -> None:
    """What another package does not promise to keep is reached through ``compat`` of the layer."""
    # A named tuple's fields are public, argparse's class is named for a type checker alone, the last is our own mark.
    allowed = {"value._fields", "argparse._SubParsersAction", "part._forgets"}
    found = {name: set(_private_names(name)) - allowed for name in MODULES if not name.endswith(".compat")}
    assert {name: private for name, private in found.items() if private} == {}
