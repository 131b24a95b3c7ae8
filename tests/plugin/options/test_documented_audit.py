"""The audit of docs/adding-an-audit.md, built from that page alone as another distribution, is found, run and shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lm_audit.runstore import read_run
from lm_audit.runstore.records import Run

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "adding-an-audit.md"


def files_of(page: str) -> dict[str, str]:
    """The files that a page writes out: a line with the path, an empty one, and the fenced text."""
    found = re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", page, re.M | re.S)
    return dict(found)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path as an installation leaves it: the package, and the entry point in its metadata."""
    folder = tmp_path_factory.mktemp("site")
    files = files_of(PAGE.read_text(encoding="utf-8"))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = folder / "repetition_audit-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in names.items()) for group, names in groups]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def called(site: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """``python -m MODULE WORDS`` with the distribution installed, in a folder of its own."""
    path = os.pathsep.join([str(site), str(ROOT / "harness")])
    home = site.parent / "project"
    home.mkdir(exist_ok=True)
    (home / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(
        command,
        cwd=home,
        env=os.environ | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def run(site: Path) -> Run:
    """What ``lm-audit run -m repetition`` left."""
    reports = site.parent / "reports"
    done = called(site, "lm_audit.cli", "run", "-m", "repetition", "--model", "tiny", "-q", "--reports", str(reports))
    assert done.returncode == 0, done.stdout + done.stderr
    return read_run(next(path for path in reports.iterdir() if path.is_dir()))


@pytest.mark.slow
def test_its_cases_are_selected_by_its_marker_and_hold(run: Run) -> None:
    cases = {case.case_id.rpartition("::")[2]: case for case in run.cases}
    planted = {"test_planted[tiny@cpu-taught-to-repeat]", "test_nothing[tiny@cpu-words-never-read]"}
    assert set(cases) == {"test_repetition[tiny@cpu-plain]", *planted}
    assert {case.audit for case in run.cases} == {"repetition"}
    controls = [case.last.control for case in run.cases if case.is_control]
    assert [control.passed for control in controls if control is not None] == [True, True]


@pytest.mark.slow
def test_its_finding_and_the_direction_of_its_metric_are_recorded(run: Run) -> None:
    plain = next(case for case in run.cases if "plain" in case.case_id)
    (finding,) = plain.last.findings
    assert run.metadata["options"]["audit"]["repetition_word"] == "window" and len(plain.last.figures) == 1
    assert "repeat the last word" in finding.statement and finding.effect is not None and finding.effect.n == 12
    assert plain.last.metrics["repetition.rate"].better == "lower"
    summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
    assert "repetition.rate" in {told["key"] for told in summary["findings"]}


def test_its_plan_is_read(site: Path) -> None:
    done = called(site, "lm_audit.cli", "plan", "-m", "repetition", "--model", "tiny")
    assert "repetition.rate" in done.stdout, done.stdout + done.stderr


def test_its_option_is_listed_and_its_package_in_place_of_a_page_that_is_not_here(site: Path) -> None:
    listed = called(site, "lm_audit.cli", "list", "-m", "repetition")
    assert "--repetition-word: the word that the last one" in listed.stdout, listed.stdout + listed.stderr
    assert "(package repetition_audit)" in listed.stdout and "docs/repetition.md" not in listed.stdout


def test_cases_that_no_audit_claims_are_an_error_when_an_audit_is_asked_for(site: Path) -> None:
    home = site.parent / "project"
    home.mkdir(exist_ok=True)
    text = "from lm_audit.plugin import Case, cases\n\n@cases([Case('a')])\ndef test_x(case, evidence): ...\n"
    (home / "test_other.py").write_text(text)
    words = ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options", "-m", "bias", "--collect-only", "-q"]
    done = called(site, "pytest", *words, "test_other.py")
    assert done.returncode != 0 and "the cases in test_other.py bear no audit marker" in done.stdout, done.stdout
    (home / "test_other.py").rename(home / "test_bias.py")
    again = called(site, "pytest", *words, "test_bias.py")
    assert "test_bias.py::test_x[a]" in again.stdout, again.stdout
