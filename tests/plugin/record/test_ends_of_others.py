"""What breaks at the ends of a run costs no page, and what never ran is not put on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.toy_audit import audit_project, last_run, outcomes, run_pytest, runs

BREAKING = """
import os

def pytest_sessionfinish(session):
    if os.environ.get("BREAK") and not hasattr(session.config, "workerinput"):
        raise OSError("nowhere to write")
"""


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_another_plugin_that_breaks_at_the_end_costs_no_page(tmp_path: Path, workers: str) -> None:
    project = audit_project(tmp_path)
    conftest = project / "conftest.py"
    conftest.write_text(conftest.read_text() + BREAKING)
    done = run_pytest(project, "-n", workers, BREAK="1")
    assert done.code == 1 and "nowhere to write" in done.output
    run = last_run(project)
    assert run.finished and (run.folder / "index.html").exists() and (run.folder.parent / "index.html").exists()
    assert run_pytest(project, "--resume", run.run_id).counts == {"resumed": 3}


@pytest.mark.parametrize(
    ("workers", "listing"),
    [
        *(("0", listing) for listing in ("--setup-plan", "--fixtures", "--fixtures-per-test", "--collect-only")),
        *(("2", listing) for listing in ("--setup-plan", "--collect-only")),
        *(pytest.param("2", listing, marks=pytest.mark.slow) for listing in ("--fixtures", "--fixtures-per-test")),
    ],
)
def test_what_only_lists_leaves_no_run(tmp_path: Path, listing: str, workers: str) -> None:
    project = audit_project(tmp_path)
    done = run_pytest(project, "-n", workers, listing)
    assert done.code == 0, done.output
    assert not runs(project) and "report:" not in done.output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_set_up_alone_is_no_audit(tmp_path: Path, workers: str) -> None:
    project = audit_project(tmp_path)
    done = run_pytest(project, "-n", workers, "--setup-only")
    assert done.code != 0 and not [run for run in runs(project) if (run / "index.html").exists()], done.output
    if workers == "0":
        assert "--setup-only: audit cases would be on record as passed" in done.output


LOST = """
import shutil
from pathlib import Path

import pytest
from lm_audit.plugin import Case, cases


@pytest.mark.bias
@cases([Case("first"), Case("second")])
def test_probe(case, evidence):
    if case.id == "first":
        shutil.rmtree("allure")
        Path("allure").write_text("")
"""


def test_results_that_allure_cannot_write_cost_no_case(tmp_path: Path) -> None:
    pytest.importorskip("allure_pytest")
    done = run_pytest(audit_project(tmp_path, LOST), "-p", "allure_pytest", "--alluredir", "allure")
    assert done.code == 0 and "INTERNALERROR" not in done.output, done.output
    assert "the results for Allure could not be completed" in done.output
    assert outcomes(last_run(tmp_path)) == {"first": "passed", "second": "passed"}
