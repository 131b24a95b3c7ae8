"""The audit cases that come with the package: ``evals/`` of a checkout, ``lm_audit.evals`` of an installation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

import lm_audit
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import UsageError
from lm_audit.plugin.compat import places_named
from lm_audit.shared.textfiles import is_there

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
    """The words of ``lm-audit run ARGUMENTS`` for pytest: the plugin with its short names, the audits, the arguments.

    The audits are those that the arguments name by file, folder or case id (``evals/...`` also where no such folder
    is), else all; which they are does not depend on the folder that one stands in. Raises as ``suite_arguments`` does.
    """
    plugins = ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options", "-W", _LOADED_BEFORE]
    # Most calls name none, and need not be read twice.
    asked = any(map(_is_place, arguments))
    named = [word for word in places_named([*plugins, *arguments]) if _is_place(word)] if asked else []
    if not named:
        return [*plugins, *suite_arguments(), *arguments]
    found = {word: _in_suite(word) for word in named}
    shipped = ["--pyargs"] if any(word.startswith(SHIPPED) for word in found.values()) else []
    return [*plugins, *shipped, *(found.get(word, word) for word in arguments)]


_LOADED_BEFORE = "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"
"""Of the package, which the command imports before pytest does, and of plugins that were asked for their options."""


def is_shipped(path: Path) -> bool:
    """Whether a file of cases is one that comes with the package."""
    installed = Path(lm_audit.__file__).resolve().parent / "evals"
    return path.resolve().parent in (_CHECKOUT, installed)


def _is_place(word: str) -> bool:
    """Whether a word is a place, and not the value of an option that a conftest is yet to declare."""
    path = word.partition("::")[0]
    return path.endswith(".py") or "::" in word or is_there(Path(path))


def _in_suite(word: str) -> str:
    """``evals/test_bias.py::...`` where no such file is here: the one that is installed."""
    path, separator, inner = word.partition("::")
    parts = Path(path).parts
    if parts[:1] != ("evals",) or is_there(Path(path)):
        return word
    if _exists(SHIPPED):  # By its module's name: the file's place would be taken for the root of the reports.
        return ".".join((SHIPPED, *parts[1:])).removesuffix(".py") + separator + inner
    return str(_CHECKOUT.joinpath(*parts[1:])) + separator + inner


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
