"""What the packages export is a promise: it changes here, on purpose, or not at all."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import lm_audit

ROOT_NAMES = {
    "Control", "DataError", "Estimate", "Evidence", "Figure", "GateError", "HarnessError", "LanguageModel",
    "ModelError", "StoreError", "UsageError", "load_model", "read_run",
}  # fmt: skip


def test_root_exports_are_few_and_pinned() -> None:
    assert set(lm_audit.__all__) == ROOT_NAMES
    assert len(ROOT_NAMES) <= 20


@pytest.mark.parametrize(
    "package",
    ["lm_audit", "lm_audit.models", "lm_audit.stats", "lm_audit.plugin", "lm_audit.runstore", "lm_audit.audits.bias"],
)
def test_every_exported_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


def test_importing_the_package_loads_no_torch() -> None:
    code = "import lm_audit, lm_audit.models, lm_audit.plugin, lm_audit.audits.bias, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
