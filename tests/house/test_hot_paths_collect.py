"""``make benchmark`` times something: its cases are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_cases_of_make_benchmark_are_found() -> None:
    command = [sys.executable, "-m", "pytest", "benchmarks", "-p", "benchmark", "-m", "benchmark"]
    asked = ("-q", "--collect-only", "-p", "no:cacheprovider")
    listed = subprocess.run([*command, *asked], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    for name in ("scoring_a_list[grid]", "tree_and_packs", "writing_the_ledger", "folding", "the_report", "needle"):
        assert name in listed.stdout
