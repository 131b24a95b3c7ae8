"""Whose class a config names: ``architectures`` beside ``model_type``, held to transformers' own tables.

transformers builds the class of ``model_type`` and passes over ``architectures``. Families whose weights have the same
names and shapes (Llama, Mistral, Gemma) compute otherwise, so that such a slip gives other numbers and no error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed


def check_class_names(config: Mapping[str, object], path: Path) -> None:
    """``ModelError`` where ``config`` names classes, and each that transformers knows is of another family's module.

    A class that it does not know says nothing, nor do classes beside code of the checkpoint's own.
    """
    names, kind = config.get("architectures"), config.get("model_type")
    if config.get("auto_map") or not isinstance(names, list) or not isinstance(kind, str):
        return
    table = _table()
    known = {name: table.kinds[name] for name in names if isinstance(name, str) and name in table.kinds}
    if not known or kind not in table.all_kinds:
        return
    own = table.module_of(kind)
    if any(table.module_of(other) == own for kinds in known.values() for other in kinds):
        return
    name, kinds = next(iter(known.items()))
    raise ModelError(
        f"{path}: architectures names {name}, which is of model_type {' or '.join(sorted(kinds))}, and model_type is"
        f" {kind!r}; transformers would take the latter's class for the former's weights: set the wrong one right"
    )


def check_causal_kind(config: Mapping[str, object], path: Path) -> None:
    """``ModelError`` for a kind of model that transformers knows and has no causal language model of.

    A part of a model with pictures that was saved by itself (Llama 3.2 Vision's language model) has a class, which is
    found by the whole model's kind alone.
    """
    kind, table = config.get("model_type"), _table()
    if config.get("auto_map") or not table.causal or kind not in table.all_kinds or kind in table.causal:
        return
    names = config.get("architectures")
    for name in [name for name in names if isinstance(name, str)] if isinstance(names, list) else ():
        if wholes := sorted(table.causal & table.kinds.get(name, frozenset())):
            raise ModelError(
                f"{path}: model_type is {kind!r:.60}, by which transformers finds no causal language model; it finds"
                f" {name} by {' or '.join(wholes)}: write a config of that model_type that holds these settings as its"
                " text_config"
            )
    raise ModelError(
        f"{path}: model_type is {kind!r:.60}, of which transformers has no causal language model (it may see pictures,"
        " hear, or encode); a language model inside it can be audited where it is saved by itself"
    )


def unknown_classes(config: Mapping[str, object]) -> str:
    """The classes that ``config`` names and transformers does not know, as one line; empty where it knows one."""
    names = config.get("architectures")
    if config.get("auto_map") or not isinstance(names, list) or not names or not _table().kinds:
        return ""
    return "" if any(name in _table().kinds for name in names) else listed([str(name) for name in names])


@dataclass(frozen=True)
class _Table:
    """What transformers says of its classes: the kinds that each is for, and the module of a kind."""

    kinds: Mapping[str, frozenset[str]]
    all_kinds: frozenset[str]
    modules: Mapping[str, str]
    causal: frozenset[str]

    def module_of(self, kind: str) -> str:
        return self.modules.get(kind, kind.replace("-", "_"))


@cache
def _table() -> _Table:
    """Read from its source, since importing it takes seconds; empty where that is written otherwise."""
    classes: dict[str, set[str]] = {}
    kinds: set[str] = set()
    causal: set[str] = set()
    modules: dict[str, str] = {}
    for file in ("modeling_auto.py", "auto_mappings.py", "configuration_auto.py"):
        for table, kind, value in _pairs(file):
            if table.startswith("MODEL_") and table.endswith("NAMES"):
                classes.setdefault(value, set()).add(kind)
                if table == "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES":
                    causal.add(kind)
            elif table == "CONFIG_MAPPING_NAMES":
                kinds.add(kind)
            elif table == "SPECIAL_MODEL_TYPE_TO_MODULE_NAME":
                modules[kind] = value
    return _Table(
        {name: frozenset(found) for name, found in classes.items()}, frozenset(kinds), modules, frozenset(causal)
    )


def _pairs(file: str) -> Iterator[tuple[str, str, str]]:
    """(table, key, value) of every table of names in a file; a value of several names gives each."""
    package = find_spec("transformers")
    if package is None or package.origin is None:
        return
    try:
        tree = ast.parse((Path(package.origin).parent / "models" / "auto" / file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return
    for statement in tree.body:
        for key, value in _entries(statement):
            names = value.elts if isinstance(value, ast.Tuple) else [value]
            for name in names:
                if isinstance(key, ast.Constant) and isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield _name_of(statement), str(key.value), name.value


def _entries(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Keys and values of ``NAME = OrderedDict([(key, value), ...])`` and ``NAME.update({key: value, ...})``."""
    call = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
    for argument in call.args if isinstance(call, ast.Call) else ():
        if isinstance(argument, ast.Dict):
            yield from ((key, value) for key, value in zip(argument.keys, argument.values, strict=True) if key)
        elif isinstance(argument, ast.List):
            pairs = [one.elts for one in argument.elts if isinstance(one, ast.Tuple) and len(one.elts) == 2]
            yield from ((key, value) for key, value in pairs)


def _name_of(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    call = statement.value if isinstance(statement, ast.Expr) else None
    owner = call.func if isinstance(call, ast.Call) else None
    return owner.value.id if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) else ""
