"""What breaks at the ends of a run costs no page, and what never ran is not put on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.toy_audit import audit_project, last_run, run_pytest, runs


@pytest.mark.parametrize("workers", ["0", "2"])
def test_another_plugin_that_breaks_at_the_end_costs_no_page(tmp_path: Path, workers: str) -> None:
    project = audit_project(tmp_path)
    done = run_pytest(project, "-n", workers, "--junitxml=/dev/null/x.xml")
    assert done.code == 1 and "/dev/null" in done.output
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
