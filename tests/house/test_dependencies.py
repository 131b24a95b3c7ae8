"""pyproject.toml names what the package imports, and nothing that it does not import."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITH_PYTORCH = {"triton"}
"""Comes with builds of PyTorch for GPUs, and is asked for only there."""
BY_HAND = {"mlflow": "mlflow-skinny", "wandb": "wandb"}
"""Exporters that the locks leave out, so that no installed package tells whose modules they are."""


def named(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0]) for requirement in requirements}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def imported() -> dict[str, str]:
    """Distributions of other people whose modules the package and the audit cases import, with a file that does."""
    homes, found = packages_distributions(), dict[str, str]()
    for path in [*(ROOT / "harness").rglob("*.py"), *(ROOT / "evals").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for module in {name.split(".")[0] for name in names} - {"lm_audit", "evals"} - WITH_PYTORCH:
                if module not in sys.stdlib_module_names:
                    home = normal(BY_HAND.get(module) or homes.get(module, [module])[0])
                    found.setdefault(home, f"{path.relative_to(ROOT)} imports {module}")
    return found


def test_what_is_imported_is_named() -> None:
    extras = PROJECT["optional-dependencies"].values()
    known = named([*PROJECT["dependencies"], *(one for extra in extras for one in extra)])
    assert not {home: where for home, where in imported().items() if home not in known}


def test_what_a_user_must_install_is_imported() -> None:
    assert named(PROJECT["dependencies"]) <= set(imported())
