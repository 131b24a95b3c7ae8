"""The affinity scheduler under real xdist workers: crashes, reruns, -x, --lf, odd numbers of cases and workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.plugin.toy_run import Outcome, run_pytest, write_project

RERUNS = ("xdist", "rerunfailures")

Make = Callable[[Sequence[str | None], int], Path]
"""Writes a project with so many cases for each of these models; None stands for cases without a model."""

SOURCE = '''
import json, os, signal, sys, time
from pathlib import Path
import pytest

CASES = [{"model": m, "case": c} for m in __MODELS__ for c in range(__CASES__)]
IDS = [f"{p['model']}@cpu-c{p['case']}" if p["model"] else f"free{p['case']}" for p in CASES]
LOADED = set()
LOG = Path(__file__).with_name("log.jsonl")


def log(**entry):
    with LOG.open("a") as file:
        file.write(json.dumps(entry) + "\\n")


def crash_now(name):
    """Die if this case is listed in CRASH, at most as often as is written behind its colon."""
    for entry in os.environ.get("CRASH", "").split():
        listed, _, times = entry.partition(":")
        before = LOG.read_text().count(json.dumps({"crash": name}))
        if listed == name and before < int(times or 99):
            log(crash=name)
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("p", CASES, ids=IDS)
def test_case(p, evidence):
    if p["model"] and p["model"] not in LOADED:
        LOADED.add(p["model"])
        time.sleep(0.3)
        log(load=p["model"], worker=os.environ.get("PYTEST_XDIST_WORKER"))
    name = f"{p['model']}-c{p['case']}"
    log(ran=name, worker=os.environ.get("PYTEST_XDIST_WORKER"))
    crash_now(name)
    assert name not in os.environ.get("FAIL", "").split()
'''


@pytest.fixture
def project(tmp_path: Path) -> Make:
    def make(models: Sequence[str | None], cases: int) -> Path:
        source = SOURCE.replace("__MODELS__", repr(list(models))).replace("__CASES__", str(cases))
        write_project(tmp_path, test_toy=source)
        (tmp_path / "log.jsonl").touch()
        return tmp_path

    return make


def entries(folder: Path, key: str) -> list[str]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line[key] for line in lines if key in line]


def check_all_ran(folder: Path, outcome: Outcome, count: int) -> None:
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": count}
    assert Counter(entries(folder, "ran")).most_common(1)[0][1] == 1


def keep_costs(folder: Path, models: Sequence[str], cases: int, *, case_s: float, load_s: float) -> None:
    """What an earlier run has measured, which stands: how long this one's cases and loads take does not matter."""
    ids = [f"test_toy.py::test_case[{model}@cpu-c{case}]" for model in models for case in range(cases)]
    costs = {"cases": dict.fromkeys(ids, case_s), "loads": {f"{model}@cpu": load_s for model in models}}
    (folder / "reports").mkdir()
    (folder / "reports" / "durations.json").write_text(json.dumps(costs), encoding="utf-8")


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_three_models_are_loaded_three_times(project: Make, workers: int) -> None:
    folder = project(["a-1", "b", "c"], 5)
    keep_costs(folder, ["a-1", "b", "c"], 5, case_s=0.1, load_s=9.0)
    check_all_ran(folder, run_pytest(folder, "-n", str(workers)), 15)
    assert sorted(entries(folder, "load")) == ["a-1", "b", "c"]


def test_one_model_is_shared_where_its_work_outweighs_a_load(project: Make) -> None:
    folder = project(["a"], 8)
    keep_costs(folder, ["a"], 8, case_s=9.0, load_s=1.0)
    outcome = run_pytest(folder, "-n", "2", "-v")
    check_all_ran(folder, outcome, 8)
    assert entries(folder, "load") == ["a", "a"]
    assert "AffinityScheduling" in outcome.output, "what another --dist mode replaces"


def test_a_crash_costs_exactly_one_case(project: Make) -> None:
    folder = project(["a", "b", None], 6)
    outcome = run_pytest(folder, "-n", "2", CRASH="a-c2")
    assert outcome.code == 1
    assert outcome.counts == {"failed": 1, "passed": 17}
    assert Counter(entries(folder, "ran")).most_common(1)[0][1] == 1
    assert "crashed while running 'test_toy.py::test_case[a@cpu-c2]'" in outcome.output


def test_a_crash_in_the_last_case_of_all_is_reported(project: Make) -> None:
    folder = project(["a"], 3)
    outcome = run_pytest(folder, "-n", "1", CRASH="a-c2")
    assert outcome.counts == {"failed": 1, "passed": 2}


def test_a_model_that_keeps_crashing_is_given_up_and_its_cases_are_errors(project: Make) -> None:
    folder = project(["bad", "good"], 8)
    crashes = " ".join(f"bad-c{case}" for case in range(8))
    outcome = run_pytest(folder, "-n", "2", CRASH=crashes)
    assert outcome.code == 1
    assert outcome.counts["passed"] == 8
    # Two workers may both be in the model when its third crash happens.
    assert outcome.counts["failed"] in (3, 4)
    assert outcome.counts["failed"] + outcome.counts["error"] == 8
    assert "model unhealthy: workers crashed in 3 cases of bad@cpu" in outcome.output


def test_how_many_crashes_are_too_many_can_be_chosen(project: Make) -> None:
    outcome = run_pytest(
        project(["bad", "good"], 4), "-n", "1", "--max-model-crashes", "1", CRASH="bad-c0 bad-c1 bad-c2 bad-c3"
    )
    assert outcome.counts == {"failed": 1, "error": 3, "passed": 4}


def test_cases_for_which_no_worker_is_left_are_errors(project: Make) -> None:
    outcome = run_pytest(project([None], 6), "-n", "1", "--max-worker-restart", "0", CRASH="None-c1")
    assert outcome.code == 1
    assert outcome.counts == {"failed": 1, "passed": 1, "error": 4}
    assert "no worker was left (--max-worker-restart is 0)" in outcome.output


def test_a_crashed_case_can_be_rerun(project: Make) -> None:
    folder = project(["a", "b"], 4)
    outcome = run_pytest(folder, "-n", "2", "--reruns", "2", plugins=RERUNS, CRASH="a-c1:1 b-c3:2")
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 8, "rerun": 3}


def test_a_case_that_crashes_at_every_rerun_fails_once(project: Make) -> None:
    outcome = run_pytest(project(["a"], 4), "-n", "2", "--reruns", "1", plugins=RERUNS, CRASH="a-c1")
    assert outcome.code == 1
    assert outcome.counts == {"passed": 3, "rerun": 1, "failed": 1}


def test_a_failing_case_is_rerun_in_place(project: Make) -> None:
    outcome = run_pytest(project(["a", "b"], 3), "-n", "2", "--reruns", "2", plugins=RERUNS, FAIL="b-c1")
    assert outcome.counts == {"passed": 5, "rerun": 2, "failed": 1}


def test_x_stops_at_the_first_failure(project: Make) -> None:
    folder = project(["a"], 120)
    outcome = run_pytest(folder, "-n", "2", "-x", FAIL="a-c3")
    assert outcome.code == 2
    assert outcome.counts["failed"] == 1
    assert len(entries(folder, "ran")) < 120
    assert "error" not in outcome.counts


def test_lf_runs_what_failed(project: Make) -> None:
    folder = project(["a", "b"], 4)
    assert run_pytest(folder, "-n", "2", FAIL="b-c1", CRASH="a-c2").counts["failed"] == 2
    again = run_pytest(folder, "-n", "2", "--lf")
    assert again.counts == {"passed": 2}, again.output


@pytest.mark.parametrize(
    ("models", "cases", "workers"),
    [
        (["a", None], 1, 3),
        pytest.param(["a"], 1, 4, marks=pytest.mark.slow),
        pytest.param([None], 3, 4, marks=pytest.mark.slow),
    ],
)
def test_more_workers_than_cases(project: Make, models: Sequence[str | None], cases: int, workers: int) -> None:
    folder = project(models, cases)
    check_all_ran(folder, run_pytest(folder, "-n", str(workers)), len(models) * cases)


def test_no_cases_at_all(project: Make) -> None:
    outcome = run_pytest(project(["a"], 3), "-n", "2", "-k", "nothing")
    assert outcome.code == 5


def test_every_worker_gets_its_part_of_cases_without_a_model(project: Make) -> None:
    folder = project([None], 12)
    source = (folder / "test_toy.py").read_text(encoding="utf-8")
    slow = source.replace("    crash_now(name)", "    time.sleep(0.05)")
    (folder / "test_toy.py").write_text(slow, encoding="utf-8")
    check_all_ran(folder, run_pytest(folder, "-n", "2"), 12)
    assert set(entries(folder, "worker")) == {"gw0", "gw1"}


def test_another_dist_mode_is_respected(project: Make) -> None:
    outcome = run_pytest(project(["a", "b"], 3), "-n", "2", "--dist", "loadscope", "-v")
    assert outcome.counts == {"passed": 6}
    assert "LoadScopeScheduling" in outcome.output and "AffinityScheduling" not in outcome.output


def test_workers_that_collect_differently_are_an_error_and_no_hang(project: Make) -> None:
    folder = project(["a"], 3)
    with (folder / "test_toy.py").open("a", encoding="utf-8") as file:
        file.write("\nif os.environ.get('PYTEST_XDIST_WORKER') == 'gw1':\n    def test_more(): pass\n")
    outcome = run_pytest(folder, "-n", "2")
    assert outcome.code != 0
    # Whichever worker reports first is named first.
    assert any(
        f"Different tests were collected between {pair}" in outcome.output for pair in ("gw0 and gw1", "gw1 and gw0")
    )


def test_durations_are_kept_for_the_next_run(project: Make) -> None:
    folder = project(["a"], 2)
    (folder / "reports").mkdir()
    run_pytest(folder, "-n", "1")
    kept = json.loads((folder / "reports" / "durations.json").read_text(encoding="utf-8"))
    assert set(kept["cases"]) == {"test_toy.py::test_case[a@cpu-c0]", "test_toy.py::test_case[a@cpu-c1]"}
    assert set(kept["loads"]) == {"a@cpu"}
