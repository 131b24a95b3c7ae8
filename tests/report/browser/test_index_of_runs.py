"""The page over all runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.report import write_reports
from lm_audit.report.index.all_runs import write_index
from tests.report.conftest import Watched
from tests.report.made_runs import MadeCase, share, showcase, write_run


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nightly runs with a falling metric, and one that died before its report."""
    folder = tmp_path_factory.mktemp("reports")
    case = MadeCase("evals/test_needle.py::test_n[m@cpu-x]", "needle", "m")
    for k, value in enumerate((0.9, 0.8, 0.5)):
        metrics = {"needle.recall": share(value, better="higher")}
        options = {"size": "smoke", "tags": ["nightly", *(["release"] if k == 2 else [])]}
        run = folder / f"2026010{k + 1}-120000-000{k}"
        write_run(run, [replace(case, metrics=metrics)], started=f"2026-01-0{k + 1}T12:00:00+0000", options=options)
        write_reports(run)
    write_run(folder / "20260104-120000-dead", [case], finished=False)
    write_index(folder)
    return folder


def test_it_lists_all_runs_newest_first_and_filters_by_tag(watched: Watched, reports: Path) -> None:
    page = watched.open(reports / "index.html")
    ids = page.locator(".runs tbody a").all_inner_texts()
    assert ids == sorted(ids, reverse=True) and len(ids) == 4
    assert "No report was written yet." in page.locator(".runs tr", has_text="dead").inner_text()
    page.locator("#chips [data-tag='release']").click()
    assert page.locator(".runs tbody tr:visible").count() == 1
    page.locator("#chips [data-tag='release']").click()
    page.locator("#filter").fill("0001")
    assert page.locator(".runs tbody tr:visible a").inner_text() == "20260102-120000-0001"
    watched.assert_clean(reports / "index.html")


def test_a_headline_metric_has_a_trend_with_every_run(watched: Watched, reports: Path) -> None:
    page = watched.open(reports / "index.html")
    trend = page.locator(".trends figure")
    assert trend.count() == 1 and "recall" in trend.inner_text() and "latest of 3 runs" in trend.inner_text()
    dots = trend.locator(".dot").evaluate_all("dots => dots.map((dot) => Number(dot.getAttribute('cy')))")
    assert dots == sorted(dots) and dots[0] < dots[2]
    assert "20260101-120000-0000: 0.90" in trend.locator("title").first.text_content()


def test_a_run_is_one_click_away(watched: Watched, reports: Path) -> None:
    page = watched.open(reports / "index.html")
    page.locator(".runs a", has_text="0002").click()
    assert page.locator("h1").inner_text() == "Measured, not judged."


def test_the_command_rebuilds_report_and_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = showcase(tmp_path / "20260101-120000-abcd", n_rows=5)
    assert main(["report", "latest", "--reports", str(tmp_path)]) == 0
    said = capsys.readouterr().out.split()
    assert said == [str(folder / "index.html"), str(tmp_path / "index.html")]
    assert all(Path(path).is_file() for path in said)
    named = showcase(tmp_path / "mine", n_rows=5)  # a name that sorts behind every id
    for run, started in ((folder, "2026-01-02T12:00:00+0000"), (named, "2026-01-01T12:00:00+0000")):
        record = {"run_id": run.name, "started": started, "sessions": []}
        (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["report", "latest", "--reports", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split()[0] == str(folder / "index.html")
    listed = (tmp_path / "index.html").read_text("utf-8")
    assert listed.index(f"{folder.name}/") < listed.index("mine/")
    assert main(["report", "no-such-run", "--reports", str(tmp_path)]) == 2
