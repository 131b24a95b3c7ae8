"""The audit cases that come with the package: ``evals/`` of a checkout, ``lm_audit.evals`` of an installation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

import lm_audit
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import UsageError

SHIPPED = "lm_audit.evals"
_CHECKOUT = Path(lm_audit.__file__).resolve().parents[2] / "evals"


def suite_arguments() -> list[str]:
    """What pytest must be told to collect every audit that is installed.

    Another package's audit brings its cases as the package ``evals`` inside of what its entry point names. Raises
    ``UsageError`` where the package's own cases are in neither place.
    """
    others = [f"{package}.evals" for package in audit_packages().values()]
    found = [name for name in (SHIPPED, *others) if _exists(name)]
    if SHIPPED in found:
        return ["--pyargs", *found]
    if not _CHECKOUT.is_dir():
        raise UsageError(f"the audit cases are neither in {SHIPPED} nor in {_CHECKOUT}; install pytest-lm-audit again")
    return ["--pyargs", str(_CHECKOUT), *found]


def suite_call(arguments: Sequence[str]) -> list[str]:
    """The words of ``lm-audit run ARGUMENTS`` for pytest: the plugin with its short names, all audits, the arguments.

    Which cases they are does not depend on the folder that one stands in. Raises as ``suite_arguments`` does.
    """
    return ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options", *suite_arguments(), *arguments]


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """A case has one id wherever it is run from: ``evals/test_bias.py::test_x[...]``, as in a checkout."""
    if module_path.parent != Path(lm_audit.__file__).parent / "evals":
        return None
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path, nodeid=f"evals/{module_path.name}")
    return module
