"""A run on a cluster is the run that one process makes: selection, gates, exit codes, failures and what is resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.acknowledging_audit import only_run
from tests.plugin.cluster.test_ray_controller import PLACES, PLUGINS, on_cluster, project_in
from tests.plugin.toy_run import REPOSITORY, Outcome, run_fresh, run_pytest

SLOW = pytest.mark.slow
GATES = "[bias.mean]\nmax = 100\n"
BROKEN = "[bias.mean]\nmax = -100\n"


def told(folder: Path) -> dict[str, Any]:
    """What the report says first, apart from which run it was."""
    (file,) = folder.glob("reports/*/summary.json")
    summary = json.loads(file.read_text(encoding="utf-8"))
    return {key: value for key, value in summary.items() if key not in ("run_id", "when")}


@pytest.mark.parametrize(
    ("words", "fails", "code"),
    [
        (("-m", "bias", "-k", "c1 or c2 or c3", "--gates", "gates.toml"), "", 0),
        pytest.param(
            ("-m", "bias", "-k", "c1 or c2", "--gates", "broken.toml", "--undecided", "fail"), "", 1, marks=SLOW
        ),
        pytest.param(("-k", "c1 or c2 or other"), "c2", 1, marks=SLOW),
        pytest.param(("-m", "bias", "-k", "nothing"), "", 5, marks=SLOW),
    ],
)
def test_selection_gates_and_exit_codes_are_those_of_one_process(
    tmp_path: Path, words: tuple[str, ...], fails: str, code: int
) -> None:
    outcomes: list[tuple[Outcome, Path]] = []
    for name, run in (("single", run_pytest), ("cluster", on_cluster)):
        folder = project_in(tmp_path / name)
        (folder / "gates.toml").write_text(GATES, encoding="utf-8")
        (folder / "broken.toml").write_text(BROKEN, encoding="utf-8")
        outcomes.append((run(folder, *words, LM_AUDIT_TOY_FAIL=fails), folder))
    (single, alone), (cluster, spread) = outcomes
    assert single.code == cluster.code == code, cluster.output
    assert single.counts == cluster.counts
    if code != 5:
        assert told(alone) == told(spread)
        assert {case.case_id: case.outcome for case in only_run(alone).cases} == {
            case.case_id: case.outcome for case in only_run(spread).cases
        }


@SLOW
@pytest.mark.parametrize("again", [("--ray", "auto"), ("-n", "2"), ()])
def test_a_run_of_a_cluster_is_resumed_anywhere(tmp_path: Path, again: tuple[str, str]) -> None:
    folder = project_in(tmp_path / "project")
    assert on_cluster(folder, "-x", LM_AUDIT_TOY_FAIL="c4", LM_AUDIT_TOY_PAUSE="0.6").code == 1
    before = only_run(folder)
    stood = sum(case.outcome in ("passed", "failed") for case in before.cases)
    assert 0 < stood < 8
    if "--ray" in again:
        after = on_cluster(folder, "--resume", before.run_id)
    else:  # The stand-in is a plugin that the call names, and so a part of the code.
        words = ("--resume", before.run_id, "-W", "ignore::pytest.PytestAssertRewriteWarning", *again)
        after = run_pytest(folder, *words, plugins=("xdist", *PLUGINS), timeout=600, **PLACES)
    assert after.code == 1, "what failed stands as well"
    assert after.counts == {"failed": 1, "resumed": stood - 1, "passed": 9 - stood}
    whole = only_run(folder)
    assert whole.finished and not whole.missing
    assert {case.case_id.rpartition("[")[2]: case.outcome for case in whole.cases if case.outcome != "passed"} == {
        "c4]": "failed"
    }


NO_RAY = """
import os, sys
from pathlib import Path

def pytest_sessionfinish(session):  # A worker that has said that it is finished may be ended before it has written.
    if hasattr(session.config, "workerinput"):
        tell()

def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        tell()

def tell():
    loaded = [name for name in sys.modules if name.partition(".")[0] == "ray" or "plugin.cluster." in name]
    loaded = [name for name in loaded if name.rpartition(".")[2] not in ("options", "start")]
    with Path(__file__).with_name("loaded.txt").open("a") as file:
        file.write(f"{loaded}\\n")
"""


@pytest.mark.parametrize(("words", "processes"), [pytest.param((), 1, marks=pytest.mark.slow), (("-n", "1"), 2)])
def test_without_the_option_nothing_of_ray_is_imported(tmp_path: Path, words: tuple[str, str], processes: int) -> None:
    folder = project_in(tmp_path / "project")
    with (folder / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(NO_RAY)
    outcome = run_fresh(folder, *words)
    assert outcome.code == 0, outcome.output
    assert (folder / "loaded.txt").read_text(encoding="utf-8").splitlines() == ["[]"] * processes


def test_ray_is_named_where_it_is_not_installed(tmp_path: Path) -> None:
    folder = project_in(tmp_path / "project")
    (folder / "ray").mkdir()
    (folder / "ray" / "__init__.py").write_text("raise ImportError('no ray here')", encoding="utf-8")
    outcome = run_fresh(folder, "--ray", "local", plugins=(), PYTHONPATH=f"{folder}:{REPOSITORY / 'harness'}")
    assert outcome.code == 4
    assert "--ray needs Ray (no ray here); install it: pip install 'pytest-lm-audit[ray]'" in outcome.output
