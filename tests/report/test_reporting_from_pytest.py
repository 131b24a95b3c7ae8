"""A real pytest run with crashing case: pytest-html, Allure, JUnit, ``--baseline``, ``--tag``, all from one call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lm_audit.runstore.run import read_run
from tests.plugin.toy_run import run_pytest, write_project

ROOT = Path(__file__).resolve().parents[2]
AUDIT = """
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from lm_audit.plugin import Case, cases
from lm_audit.stats import wilson


def probes(options):
    return [Case(name, {"name": name}) for name in ("one", "two", "dies")]


@pytest.mark.bias
@cases(probes)
def test_probe(case, evidence):
    if case.params["name"] == "dies" and os.environ.get("DIE"):
        os.kill(os.getpid(), 9)
    p = float(os.environ["SHARE"])
    hits = [int(u < p) for u in np.random.default_rng(0).permutation(300) / 300]
    evidence.metric("bias.hit", replace(wilson(sum(hits), len(hits)), better="lower"))
    evidence.headline("bias.hit")
    evidence.rows({"item": f"i{k}", "hit": hit} for k, hit in enumerate(hits))
"""


def project(folder: Path) -> Path:
    """The probe, for whoever calls pytest on it."""
    return write_project(folder, test_probe=AUDIT)


def run_installed(folder: Path, *arguments: str, share: float, die: bool = False) -> subprocess.CompletedProcess[str]:
    """One call of pytest on the probe, in a process of its own, with the plugins of others that are installed."""
    project(folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "harness"), "SHARE": str(share), "OMP_NUM_THREADS": "1"}
    environment |= {"DIE": "1"} if die else {}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_probe.py", *arguments]
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def newest(folder: Path) -> Path:
    """The latest run under ``reports/``."""
    runs = [path.parent for path in (folder / "reports").glob("*/ledger")]
    return max(runs, key=lambda run: run.stat().st_mtime_ns)  # Two of one second have no order by their names.


def test_one_call_serves_every_reader_and_a_crash_is_in_all_of_them(tmp_path: Path) -> None:
    pytest.importorskip("pytest_html", reason="the html extra is not installed")
    gates = tmp_path / "gates.toml"
    gates.write_text("[bias.hit]\nmax = 0.6\n")
    asked = ["--gates", str(gates), "--alluredir", "allure", "--html", "plain.html", "--tag", "nightly", "-n", "2"]
    done = run_installed(tmp_path, *asked, share=0.3, die=True)
    assert done.returncode == 1, done.stdout + done.stderr
    run = read_run(newest(tmp_path))
    assert {case.case_id.partition("[")[2]: case.outcome for case in run.cases} == {
        "one]": "passed", "two]": "passed", "dies]": "crashed",
    }  # fmt: skip
    results = [json.loads(path.read_bytes()) for path in (tmp_path / "allure").glob("*-result.json")]
    assert sorted((r["name"], r["status"]) for r in results) == [
        ("test_probe[dies]", "broken"), ("test_probe[one]", "passed"), ("test_probe[two]", "passed"),
    ]  # fmt: skip
    html = (tmp_path / "plain.html").read_text()
    assert "bias.hit 0.30" in html and "met" in html
    assert "dies" in html
    assert "test_probe[dies]" in (run.folder / "junit.xml").read_text()
    assert "nightly" in (tmp_path / "reports" / "index.html").read_text()
    assert "\u2021 crashed   test_probe[dies]" in done.stdout and "gates: 2 met" in done.stdout


def test_a_baseline_fails_the_call_on_a_regression_only(tmp_path: Path) -> None:
    project(tmp_path)
    assert run_pytest(tmp_path, SHARE="0.3").code == 0
    baseline = newest(tmp_path).name
    same = run_pytest(tmp_path, "--baseline", "latest", SHARE="0.3")
    assert same.code == 0 and "0 significant regressions" in same.output and baseline in same.output
    worse = run_pytest(tmp_path, "--baseline", baseline, SHARE="0.5")
    assert worse.code == 1 and "3 significant regressions" in worse.output
    assert (newest(tmp_path) / "baseline.html").is_file()
    told = run_pytest(tmp_path, "--baseline", baseline, "--report-only", SHARE="0.5")
    assert told.code == 0 and "3 significant regressions" in told.output
    again = run_pytest(tmp_path, "--baseline", "latest", "--resume", "latest", SHARE="0.5")
    assert again.code == 4 and "latest is the run that --resume latest continues" in again.output
    absent = run_pytest(tmp_path, "--baseline", "nowhere", SHARE="0.3")
    assert absent.code == 4 and "--baseline: no run 'nowhere'" in absent.output


BASELINE_GONE = """
import shutil
from pathlib import Path

def pytest_runtest_logfinish(nodeid):
    shutil.rmtree(Path("reports", "baseline", "ledger"), ignore_errors=True)
"""
PAGE_REFUSED = """
from pathlib import Path

def pytest_runtest_logfinish(nodeid):
    for ledger in Path("reports").glob("2*/ledger"):
        (ledger.parent / "baseline.html").mkdir(exist_ok=True)
"""


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (BASELINE_GONE, "the comparison with the baseline could not be made: "),
        (PAGE_REFUSED, "its page could not be written: Is a directory"),
    ],
    ids=["baseline gone", "page refused"],
)
def test_a_comparison_that_broke_off_is_no_success(tmp_path: Path, what: str, said: str) -> None:
    project(tmp_path)
    assert run_pytest(tmp_path, SHARE="0.3").code == 0
    newest(tmp_path).rename(tmp_path / "reports" / "baseline")
    with (tmp_path / "conftest.py").open("a") as conftest:
        conftest.write(what)
    shutil.copytree(tmp_path / "reports" / "baseline", tmp_path / "kept")
    worse = run_pytest(tmp_path, "--baseline", "baseline", SHARE="0.5")
    assert worse.code == 1 and said in worse.output and "passed" in worse.output
    if what == BASELINE_GONE:
        shutil.copytree(tmp_path / "kept", tmp_path / "reports" / "baseline", dirs_exist_ok=True)
    told = run_pytest(tmp_path, "--baseline", "baseline", "--report-only", SHARE="0.5")
    assert told.code == 0 and said in told.output
