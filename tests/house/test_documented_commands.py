"""Commands and paths that the docs name are there, and a benchmark starts from the repository's root as they say."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"(?<!\w/)\b(?:benchmarks|tests|properties)/[\w./-]+\.(?:py|txt)\b")
OUR_OWN = ("README.md", "CONTRIBUTING.md", "Makefile", "docs", "harness", "benchmarks", "tests", "properties", "evals")


def texts() -> dict[Path, str]:
    """What is written for readers: pages, notebooks, the Makefile, and sources with their docstrings and comments."""
    found = {}
    for name in OUR_OWN:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in (".md", ".py", ".ipynb") or file.name == "Makefile":
                found[file] = file.read_text(encoding="utf-8")
    return found


def scripts() -> dict[Path, str]:
    """The benchmarks that are run by their path, with their source."""
    found = {path: text for path, text in texts().items() if path.is_relative_to(ROOT / "benchmarks")}
    return {path: text for path, text in found.items() if '__name__ == "__main__"' in text}


def absent(text: str) -> set[str]:
    """Paths from the root that a text names and that are not there."""
    return {name for name in NAMED.findall(text) if not (ROOT / name).is_file()}


def test_every_file_that_is_named_is_there() -> None:
    missing = {str(path.relative_to(ROOT)): found for path, text in texts().items() if (found := absent(text))}
    assert not missing


def test_a_file_that_is_not_there_is_seen() -> None:
    moved, there = "benchmarks/" + "compare_all.py", "benchmarks/mutation.py"
    assert absent(f"python {moved} --runs 3, `{there}`") == {moved}
    assert absent(f"./{moved}") == {moved} and not absent(f"audits/{moved}")  # of another folder


def test_a_benchmark_finds_the_package_in_a_checkout_that_is_not_installed() -> None:
    """A script that imports it, in a function too, puts the checkout's source on the path."""
    without = []
    for path, text in scripts().items():
        nodes = list(ast.walk(ast.parse(text)))
        modules = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        if any(name.split(".")[0] == "lm_audit" for name in modules) and '"harness"' not in text:
            without.append(str(path.relative_to(ROOT)))
    assert scripts() and not without


@pytest.mark.slow
@pytest.mark.parametrize("script", [str(path.relative_to(ROOT)) for path in scripts()])
def test_a_benchmark_starts_from_the_root(script: str) -> None:
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, script, "--help"], cwd=ROOT, env=bare, capture_output=True, text=True)
    assert done.returncode == 0 and f"usage: {Path(script).name}" in done.stdout, done.stdout + done.stderr
