"""Collection loads no model and imports no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plugin.toy_audit import MODEL_AUDIT, audit_project
from tests.plugin.toy_run import REPOSITORY, environment

PROBE = """
import sys, pytest
code = pytest.main(["--collect-only", "-q", *sys.argv[1:]])
heavy = sorted({"torch", "transformers", "pandas", "scipy"} & sys.modules.keys())
print("HEAVY", heavy, "CODE", int(code))
"""


def probe(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "-p", "no:cacheprovider", *arguments],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.stdout.strip().splitlines()[-1]


def test_the_plugin_collects_without_heavy_imports(tmp_path: Path) -> None:
    audit_project(tmp_path, MODEL_AUDIT)
    assert probe(tmp_path, "--model", "tiny") == "HEAVY [] CODE 0"


def test_evals_collect_without_torch() -> None:
    assert "torch" not in probe(REPOSITORY, "evals", "--device", "cpu")


def test_collection_alone_writes_nothing(tmp_path: Path) -> None:
    audit_project(tmp_path, MODEL_AUDIT)
    probe(tmp_path)
    assert not (tmp_path / "reports").exists()
