"""Packages that load their names on first use answer for each of them, to Python and to a type checker alike."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import lm_audit
from lm_audit.shared.lazy import homes

SOURCE = Path(lm_audit.__file__).parent
LAZY = sorted(path for path in SOURCE.rglob("__init__.py") if "= lazy(" in path.read_text(encoding="utf-8"))


def package_of(path: Path) -> ModuleType:
    return importlib.import_module(".".join(["lm_audit", *path.parent.relative_to(SOURCE).parts]))


lazy_packages = pytest.mark.parametrize("path", LAZY, ids=[path.parent.name for path in LAZY])


def test_every_package_with_lazy_names_uses_the_helper() -> None:
    own = [path for path in SOURCE.rglob("__init__.py") if "def __getattr__" in path.read_text(encoding="utf-8")]
    assert not own
    assert {path.parent.name for path in LAZY} >= {
        "lm_audit",
        "models",
        "stats",
        "bias",
        "leakage",
        "needle",
        "privacy",
    }


@lazy_packages
def test_every_name_is_there_listed_and_public(path: Path) -> None:
    package = package_of(path)
    names = homes(str(path))
    assert names
    assert set(names) <= set(package.__all__) <= set(dir(package))
    for name, home in names.items():
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


@lazy_packages
def test_no_module_takes_the_place_of_a_public_name(path: Path) -> None:
    package = package_of(path)
    for name in package.__all__:
        importlib.import_module(package.__name__)
        assert not inspect.ismodule(getattr(package, name))
        assert not (path.parent / f"{name}.py").exists()


@lazy_packages
def test_another_name_is_an_attribute_error(path: Path) -> None:
    package = package_of(path)
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'nobody'"):
        package.nobody  # noqa: B018


def test_importing_them_all_loads_neither_torch_nor_pandas() -> None:
    names = ", ".join(package_of(path).__name__ for path in LAZY)
    code = f"import sys, {names}; print([m for m in ('torch', 'pandas', 'transformers', 'scipy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
