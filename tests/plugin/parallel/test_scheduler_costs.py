"""What cases and loads are taken to cost: recorded, learnt, declared, guessed, in this order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.costs import DEFAULT_CASE_S, DEFAULT_LOAD_S, CostModel
from lm_audit.plugin.parallel.durations import DurationRecorder, read_durations
from lm_audit.plugin.parallel.work import Work
from tests.plugin.toy_run import run_pytest, write_project
from tests.present import present


@pytest.mark.parametrize(
    ("case_id", "group"),
    [
        ("evals/test_bias.py::test_x[smollm2@cpu-gender-en]", "smollm2@cpu"),
        ("t.py::test_x[gpt-2.xl@cuda:1-a]", "gpt-2.xl@cuda:1"),
        ("t.py::test_x[m@mps]", "m@mps"),
        ("t.py::TestY::test_x[m@cuda-[odd]", "m@cuda"),
        ("t.py::test_x[someone@example.org]", None),
        ("t.py::test_x[m@cpux-a]", None),
        ("t.py::test_x[a-m@cpu-b]", "a-m@cpu"),
        ("odd[m@cpu-a]/t.py::test_x", None),
        ("t.py::test_x", None),
    ],
)
def test_the_model_is_read_from_the_id(case_id: str, group: str | None) -> None:
    assert group_of(case_id) == group


def test_nothing_known() -> None:
    costs = CostModel()
    assert costs.case("a") == DEFAULT_CASE_S
    assert costs.load("m@cpu") == DEFAULT_LOAD_S


def test_what_was_recorded_stands() -> None:
    costs = CostModel({"a": 7.0}, {"m@cpu": 3.0})
    costs.observe("b", "m@cpu", 100.0, first=True)
    costs.observe("c", "m@cpu", 1.0, first=False)
    assert (costs.case("a"), costs.load("m@cpu")) == (7.0, 3.0)


def test_a_declared_cost_is_relative_to_its_neighbours() -> None:
    costs = CostModel(hints={"a": 4.0, "b": 2.0})
    assert costs.case("a") == 4.0
    costs.observe("b", None, 10.0, first=False)
    assert (costs.case("a"), costs.case("new")) == (20.0, 5.0)


def test_a_declared_cost_that_was_wrong_makes_no_other_case_shorter() -> None:
    """Six training cases that find their work in a cache sent a worker home from fifty cases of another model."""
    works = [Work(index, f"c{index}", "m@cpu") for index in range(52)] + [
        Work(f"t{k}", f"t{k}", None) for k in range(6)
    ]
    costs = CostModel(hints={f"t{k}": 60.0 for k in range(6)})
    queue = AffinityQueue(works, costs)
    for node in "ab":
        queue.add_node(node)
    for _ in range(2):
        key = present(queue.take("a")).key
        queue.done("a", key, 8.0 if key == 0 else 2.0)
    for _ in range(6):
        queue.done("b", present(queue.take("b")).key, 0.01)
    assert (costs.rate(), costs.load("m@cpu"), costs.case("t1")) == (2.0, 6.0, 120.0)
    assert present(queue.take("b")).group == "m@cpu", "it helps with what is left, a hundred seconds"


def test_records_of_cases_that_declared_nothing_tell_what_others_take() -> None:
    assert CostModel({"a": 3.0, "t": 0.1}, hints={"t": 60.0}).rate() == 3.0
    assert CostModel({"t": 30.0}, hints={"t": 60.0}).rate() == 0.5


def test_a_load_is_what_a_first_case_takes_above_the_usual() -> None:
    costs = CostModel()
    costs.observe("a", "m@cpu", 9.0, first=True)
    assert costs.load("m@cpu") == DEFAULT_LOAD_S, "nothing is usual yet"
    for name in "bcd":
        costs.observe(name, "m@cpu", 2.0, first=False)
    assert costs.load("m@cpu") == 7.0
    assert costs.load("other@cpu") == 7.0


def test_the_model_with_most_work_is_begun_first() -> None:
    works = [Work(index, f"c{index}", group) for index, group in enumerate(["a@cpu", "b@cpu", "b@cpu", "c@cpu"])]
    queue = AffinityQueue(works, CostModel({"c0": 1.0, "c1": 5.0, "c2": 5.0, "c3": 50.0}))
    for node in "xyz":
        queue.add_node(node)
    assert [present(queue.take(node)).group for node in "xyz"] == ["c@cpu", "b@cpu", "a@cpu"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"cases": 3, "loads": {}}',
        '{"cases": {"a": "x"}, "loads": {}}',
        '{"cases": {"a": ' + "9" * 400 + '}, "loads": {}}',
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_a_damaged_file_of_durations_is_no_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "durations.json").write_text(content, encoding="utf-8")
    assert read_durations(tmp_path / "durations.json") == ({}, {})
    os.truncate(tmp_path / "durations.json", 1 << 40)  # not read into memory
    assert read_durations(tmp_path / "durations.json") == ({}, {})


def report(case: str, when: str, seconds: float, outcome: str = "passed") -> pytest.TestReport:
    return pytest.TestReport(case, ("t.py", 0, case), {}, outcome, None, when, duration=seconds)  # type: ignore[arg-type]


def test_the_first_set_up_of_a_model_counts_as_its_load(tmp_path: Path) -> None:
    file = tmp_path / "durations.json"
    file.write_text(json.dumps({"cases": {"old": 1.0}, "loads": {}}), encoding="utf-8")
    audited = {f"t.py::test_x[m@cpu-{case}]" for case in ("a", "b", "skipped", "crashed")}
    recorder = DurationRecorder(file, lambda: audited)
    for case, setup in (("t.py::test_x[m@cpu-a]", 5.0), ("t.py::test_x[m@cpu-b]", 0.25)):
        for when, seconds in (("setup", setup), ("call", 1.0), ("teardown", 0.5)):
            recorder.pytest_runtest_logreport(report(case, when, seconds))
    recorder.pytest_runtest_logreport(report("t.py::test_x[m@cpu-skipped]", "setup", 0.1, "skipped"))
    recorder.pytest_runtest_logreport(report("t.py::test_x[m@cpu-crashed]", "setup", 0.1))
    for when in ("setup", "call", "teardown"):
        recorder.pytest_runtest_logreport(report("t.py::test_that_audits_nothing", when, 1.0))
    recorder.pytest_sessionfinish()
    cases, loads = read_durations(file)
    assert loads == {"m@cpu": 5.0}
    assert cases == {"old": 1.0, "t.py::test_x[m@cpu-a]": 1.5, "t.py::test_x[m@cpu-b]": 1.75}


def test_a_limit_of_no_crash_is_refused(tmp_path: Path) -> None:
    outcome = run_pytest(write_project(tmp_path), "--max-model-crashes", "0")
    assert outcome.code == 4 and "--max-model-crashes: '0' is not a whole number from 1" in outcome.output


def test_few_long_cases_among_many_short_ones_are_shared() -> None:
    # The smoke run in small: a load of 20 s, four of five cases short, and a second worker that is free after 30 s.
    seconds = {f"c{index}": 12.0 if index % 5 == 4 else 0.3 for index in range(60)} | {"free": 30.0}
    works = [Work(name, name, None if name == "free" else "m@cpu") for name in seconds]
    queue = AffinityQueue(works, CostModel())
    clock = dict.fromkeys("xy", 0.0)
    groups: dict[str, str | None] = dict.fromkeys("xy")
    for node in clock:
        queue.add_node(node)
    at_work = set(clock)
    while at_work:
        node = min(at_work, key=lambda name: clock[name])
        work = queue.take(node)
        if work is None:
            at_work.remove(node)
            continue
        took = seconds[work.case] + (20.0 if work.group not in (None, groups[node]) else 0.0)
        groups[node] = work.group or groups[node]
        clock[node] += took
        queue.done(node, work.key, took)
    assert max(clock.values()) < 1.25 * (sum(seconds.values()) + 40.0) / 2


def test_owner_and_helper_keep_stretches_of_neighbours() -> None:
    works = [Work(index, f"c{index}", "m@cpu") for index in range(30)]
    queue = AffinityQueue(works, CostModel(load_s={"m@cpu": 0.1}))
    taken: dict[str, list[int]] = {"owner": [], "helper": []}
    for node in taken:
        queue.add_node(node)
    while queue.queued:
        for node, cases in taken.items():
            work = queue.take(node)
            assert work is not None
            cases.append(int(str(work.key)))
            queue.done(node, work.key, 1.0)
    assert taken["owner"] == list(range(15))
    assert taken["helper"] == list(range(29, 14, -1))
