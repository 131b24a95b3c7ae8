"""Every metric that a smoke run records is declared in its audit's table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lm_audit.audits.metric_info import metric_info
from lm_audit.runstore import read_run

ROOT = Path(__file__).resolve().parents[2]


def recorded(tmp_path: Path, *words: str) -> set[str]:
    """The names of all metrics of a run on the toy."""
    command = [sys.executable, "-m", "pytest", "evals", "-q", "-p", "no:cacheprovider", "--model", "tiny", "--reports"]
    subprocess.run([*command, str(tmp_path), *words], cwd=ROOT, env=os.environ, check=False, capture_output=True)
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    return {name for case in read_run(run).cases for name in case.last.metrics}


@pytest.mark.slow
def test_metrics_of_a_smoke_run_are_declared(tmp_path: Path) -> None:
    names = recorded(tmp_path)
    assert {name.partition(".")[0] for name in names} == {"bias", "faithfulness", "leakage", "needle", "privacy"}
    assert [name for name in sorted(names) if metric_info(name) is None] == []
