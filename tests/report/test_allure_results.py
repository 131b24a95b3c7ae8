"""Allure: results completed from the ledger, and a report that tells nobody that it is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import StoreError
from lm_audit.report.allure.results import complete_results
from lm_audit.report.allure.whole_run import strip_analytics
from lm_audit.runstore.run import read_run
from tests.file_size_limit import file_size_limit
from tests.report.conftest import Watched

ROOT = Path(__file__).resolve().parents[2]
GRID = "evals/test_bias.py::test_preference_grid[tuned-v3@cpu-gender-en]"
TRACKED = """<html><head><script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script></head><body>
<script>window.dataLayer = []; function gtag(){dataLayer.push(arguments);} gtag('js', new Date());</script>
<script>window.app = 1;</script></body></html>"""


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    found = (json.loads(path.read_bytes()) for path in folder.glob("*-result.json"))
    return {result["fullName"]: result for result in found}


@pytest.fixture(scope="module")
def completed(shown: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the showcase run, one of which allure-pytest had begun."""
    folder = tmp_path_factory.mktemp("allure")
    begun = {
        "uuid": "u1", "name": GRID.rpartition("::")[2], "titlePath": ["evals", "test_bias.py"], "status": "passed",
        "historyId": "depends on a memory address", "start": 5, "stop": 9,
        "parameters": [{"name": "lm_audit_case", "value": "<function at 0x7fe2>"}],
        "labels": [{"name": "host", "value": "vm"}, {"name": "framework", "value": "pytest"}],
    }  # fmt: skip
    (folder / "u1-result.json").write_text(json.dumps(begun))
    assert complete_results(read_run(shown), folder) == len(read_run(shown).cases)
    return folder


def test_every_case_has_one_result_crashed_ones_included(completed: Path, shown: Path) -> None:
    results = _results(completed)
    assert set(results) == {case.case_id for case in read_run(shown).cases}
    crashed = results["evals/test_faithfulness.py::test_attribution[smollm2@cpu-long]"]
    assert crashed["status"] == "broken" and "gw1 died" in crashed["statusDetails"]["message"]


def test_a_result_gains_labels_parameters_steps_and_attachments(completed: Path) -> None:
    result = _results(completed)[GRID]
    labels = {(label["name"], label["value"]) for label in result["labels"]}
    wanted = {
        ("audit", "bias"),
        ("model", "tuned-v3"),
        ("device", "cpu"),
        ("verdict", "missed"),
        ("framework", "pytest"),
    }
    assert wanted <= labels and not any(name == "host" for name, _ in labels)
    assert result["uuid"] == "u1" and result["status"] == "failed" and result["start"] == 5
    parameters = {p["name"]: p for p in result["parameters"]}
    assert (
        parameters["axis"]["value"] == "gender" and parameters["axis"]["excluded"] and "lm_audit_case" not in parameters
    )
    step = result["steps"][0]
    assert step["name"] == "Largest gap between groups = 0.68 [0.60, 0.76]" and step["status"] == "failed"
    assert step["steps"][0]["name"].startswith("missed: max 0.5")
    kinds = {a["name"]: (completed / a["source"]).read_bytes() for a in result["attachments"]}
    assert kinds["Preference by subject"].startswith(b"\x89PNG") and kinds["metrics.csv"].startswith(b"metric,value")
    assert json.loads(kinds["metrics.json"])["bias.win_rate"]["n"] == 120


def test_history_follows_the_case_and_not_the_process(completed: Path, shown: Path, tmp_path: Path) -> None:
    complete_results(read_run(shown), tmp_path)
    ids = [{name: result["historyId"] for name, result in _results(folder).items()} for folder in (completed, tmp_path)]
    assert ids[0] == ids[1] and len(set(ids[0].values())) == len(ids[0])


def test_completing_twice_adds_nothing(completed: Path, shown: Path) -> None:
    before = {path.name: path.read_bytes() for path in completed.iterdir()}
    complete_results(read_run(shown), completed)
    assert {path.name: path.read_bytes() for path in completed.iterdir()} == before


def test_results_and_attachments_stay_whole_on_a_full_disk(completed: Path, shown: Path, tmp_path: Path) -> None:
    shutil.copytree(completed, tmp_path / "results")
    before = {path.name: path.read_bytes() for path in completed.iterdir()}
    with file_size_limit(), pytest.raises(OSError, match="File too large"):
        complete_results(read_run(shown), tmp_path / "results")
    assert {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before


def test_damaged_results_are_none(shown: Path, tmp_path: Path) -> None:
    """What a kill or another party left in the folder is neither read nor waited for."""
    damaged = (
        "",
        "[",
        "3",
        '{"labels": [1]}',
        '{"labels": null}',
        '{"titlePath": 3}',
        '{"stop": "x"}',
        '{"attachments": 1}',
    )
    for number, content in enumerate(damaged):
        (tmp_path / f"{number}-result.json").write_text(content)
    os.mkfifo(tmp_path / "pipe-result.json")
    (tmp_path / "loop-result.json").symlink_to("loop-result.json")
    (tmp_path / "folder-result.json").mkdir()
    assert complete_results(read_run(shown), tmp_path) == len(read_run(shown).cases)


def test_categories_and_environment_are_there(completed: Path) -> None:
    names = [category["name"] for category in json.loads((completed / "categories.json").read_bytes())]
    assert "Gate missed" in names and "Worker died" in names
    assert "versions_torch=2.13.0" in (completed / "environment.properties").read_text().replace("\u203a", "_")


def test_analytics_are_stripped_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(TRACKED)
    assert strip_analytics(tmp_path) == 2
    text = (tmp_path / "index.html").read_text()
    assert "gtag" not in text and "window.app = 1" in text and "Content-Security-Policy" in text
    assert strip_analytics(tmp_path) == 0 and (tmp_path / "index.html").read_text() == text
    with pytest.raises(StoreError, match="no page"):
        strip_analytics(tmp_path / "nowhere")


@pytest.mark.slow
def test_the_built_report_makes_no_request_and_shows_the_crashed_case(
    watched: Watched, completed: Path, tmp_path: Path
) -> None:
    allure = ROOT / "node_modules" / ".bin" / "allure"
    if not allure.is_file():
        pytest.skip("the npm package allure is not installed: npm install")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    config = shutil.copy(ROOT / "allurerc.json", tmp_path)
    command = [str(allure), "generate", str(completed), "--output", "report", "--config", str(config)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = tmp_path / "report" / "awesome" / "index.html"
    assert "googletagmanager" in page.read_text()
    assert strip_analytics(tmp_path / "report") >= 2
    opened = watched.open(page)
    opened.get_by_text("bias", exact=True).first.wait_for()
    assert opened.get_by_text("faithfulness").first.is_visible()
    opened.wait_for_timeout(1000)
    watched.assert_clean(page)
