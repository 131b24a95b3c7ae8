"""``--resume``: what stands, what runs again, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.session import from_options
from lm_audit.runstore import Run, read_run
from lm_audit.runstore.holding import hold
from lm_audit.runstore.layout import RunFolder
from tests.plugin.toy_audit import (
    AUDIT,
    MODEL_AUDIT,
    ONLY_A,
    audit_project,
    last_run,
    measured,
    outcomes,
    run_pytest,
    runs,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return audit_project(tmp_path)


def test_nothing_runs_twice(project: Path) -> None:
    run_pytest(project)
    before = measured(last_run(project))
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert (done.code, done.counts) == (0, {"resumed": 3})
    assert len(runs(project)) == 1
    assert measured(last_run(project)) == before
    assert all(not case.earlier for case in last_run(project).cases)


def test_a_run_is_named_by_its_folder_too(project: Path) -> None:
    run_pytest(project, ONLY_A)
    done = run_pytest(project, "--resume", str(runs(project)[0]))
    assert done.counts == {"passed": 2, "resumed": 1}
    assert len(last_run(project).planned) == 3


def test_resumed_cases_are_held_against_the_gates_of_this_call(project: Path) -> None:
    run_pytest(project)
    run_id = last_run(project).run_id
    (project / "gates.toml").write_text("[bias.gap]\nmax = 0.5\n")
    strict = run_pytest(project, "--resume", run_id, "--gates", "gates.toml")
    assert strict.code == 1
    assert "gate bias.gap <= 0.5 missed" in strict.output
    assert outcomes(last_run(project))["c"] == "failed"
    (project / "gates.toml").write_text("[bias.gap]\nmax = 1\n")
    assert run_pytest(project, "--resume", run_id, "--gates", "gates.toml").code == 0
    run = last_run(project)
    assert outcomes(run)["c"] == "passed"
    assert [verdict.word for case in run.cases for verdict in case.verdicts] == ["met"] * 3


def test_a_failure_stands_with_its_message(tmp_path: Path) -> None:
    audit_project(tmp_path, AUDIT + '\n    assert case.id != "b", "b is bad"\n')
    assert run_pytest(tmp_path).code == 1
    done = run_pytest(tmp_path, "--resume", last_run(tmp_path).run_id)
    assert done.code == 1
    assert done.counts == {"failed": 1, "resumed": 2}
    assert "b is bad" in done.output


def test_an_error_in_set_up_runs_again(tmp_path: Path) -> None:
    broken = AUDIT + "\n@pytest.fixture(autouse=True)\ndef breaks(case):\n    assert case.id != 'b'\n"
    audit_project(tmp_path, broken)
    assert run_pytest(tmp_path).code == 1
    assert outcomes(last_run(tmp_path))["b"] == "error"
    done = run_pytest(tmp_path, "--resume", last_run(tmp_path).run_id)
    assert done.counts == {"error": 1, "resumed": 2}


def test_what_changed_runs_again(project: Path) -> None:
    run_pytest(project)
    run_id = last_run(project).run_id
    audit_project(project, AUDIT.replace('"value": 0.5', '"value": 0.55'))
    done = run_pytest(project, "--resume", run_id)
    assert done.counts == {"passed": 3}, "the test file itself is an input of all its cases"
    changed = next(case for case in last_run(project).cases if "[b]" in case.case_id)
    assert [a.metrics["bias.gap"].value for a in (*changed.earlier, changed.last)] == [0.5, 0.55]


def test_input_files_are_part_of_a_case(tmp_path: Path) -> None:
    data = tmp_path / "words.txt"
    data.write_text("one")
    source = AUDIT.replace('Case("b", {"value": 0.5})', f'Case("b", {{"value": 0.5, "file": {str(data)!r}}})')
    audit_project(tmp_path, source)
    run_pytest(tmp_path)
    data.write_text("two")
    done = run_pytest(tmp_path, "--resume", last_run(tmp_path).run_id)
    assert done.counts == {"passed": 1, "resumed": 2}


def test_options_left_out_are_those_of_the_run(project: Path) -> None:
    run_pytest(project, "--seed", "9", "--model", "x=tiny", ONLY_A)
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.counts == {"passed": 2, "resumed": 1}
    assert {case.last.parameters["seed"] for case in last_run(project).cases} == {9}


def test_a_further_data_set_joins_those_of_the_run(project: Path) -> None:
    run_pytest(project, "--data", "own=pytest.ini", ONLY_A)
    done = run_pytest(project, "--resume", last_run(project).run_id, "--data", "more=conftest.py")
    assert done.code == 0, done.output
    options = last_run(project).metadata["sessions"][-1]["options"]
    assert options["data"] == {"own": "pytest.ini", "more": "conftest.py"}


@pytest.fixture(scope="module")
def with_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run, which calls that are refused leave as it is."""
    project = audit_project(tmp_path_factory.mktemp("with_data"))
    run_pytest(project, "--model", "tiny", "--data", "own=pytest.ini", ONLY_A)
    return project


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "smollm2"), "that run audits tiny (tiny), not smollm2 (smollm2)"),
        (("--model", "tiny=tiny:5"), "a run holds one model by one name"),
        (("--seed", "3"), "that run has --seed 0, this call --seed 3"),
        (("--size", "full"), "that run has --size smoke, this call --size full"),
        (("--chat", "on"), "that run has --chat auto, this call --chat on"),
        (("--thinking-tokens", "7"), "this call --thinking-tokens 7"),
        (("--data", "own=test_toy.py"), "that run has --data own=pytest.ini, this call --data own=test_toy.py"),
    ],
)
def test_another_model_seed_or_size_is_refused(with_data: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run_pytest(with_data, "--resume", last_run(with_data).run_id, *arguments)
    assert done.code == 4
    assert message in done.output
    assert len(last_run(with_data).cases) == 1 and len(runs(with_data)) == 1


def test_a_run_that_does_not_say_what_it_measures_is_refused(project: Path) -> None:
    run_pytest(project, ONLY_A)
    (last_run(project).folder / "run.json").write_text("{", encoding="utf-8")
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.code == 4
    assert "its run.json is absent or damaged" in done.output


def test_a_run_that_is_not_there_is_named(project: Path) -> None:
    done = run_pytest(project, "--resume", "20200101-000000-0000")
    assert done.code == 4
    assert "no run '20200101-000000-0000'" in done.output


def test_damaged_ledgers_resume_and_say_so(project: Path) -> None:
    run_pytest(project)
    ledger = next(runs(project)[0].glob("ledger/*.jsonl"))
    lines = ledger.read_bytes().splitlines(keepends=True)
    broken = [line for line in lines if b'"case_end"' not in line or b"[b]" not in line]
    ledger.write_bytes(b"".join(broken[:-1]) + b'{"v":1,"t":1,"ki\n' + broken[-1])
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.counts == {"passed": 1, "resumed": 2}
    (damaged,) = last_run(project).damaged
    assert "not JSON" in damaged.reason


def test_a_real_model_resumes_with_equal_evidence(tmp_path: Path) -> None:
    half, whole = tmp_path / "half", tmp_path / "whole"
    for folder in (half, whole):
        folder.mkdir()
        audit_project(folder, MODEL_AUDIT)
    assert run_pytest(half, "--model", "tiny", "--device", "cpu", "-k", "short").code == 0
    done = run_pytest(half, "--resume", last_run(half).run_id)
    assert done.counts == {"passed": 2, "resumed": 1}, done.output
    assert run_pytest(whole, "--model", "tiny", "--device", "cpu").code == 0
    assert measured(last_run(half)) == measured(last_run(whole))
    assert all(case.model_details["fingerprint"] for case in last_run(half).cases)


@pytest.mark.parametrize(
    "damage",
    [
        "metric",
        "row file",
        "artifact",
        "digit of a row",
        pytest.param("rows", marks=pytest.mark.slow),
        pytest.param("digit of a metric", marks=pytest.mark.slow),
    ],
)
def test_a_case_whose_evidence_is_damaged_runs_again(tmp_path: Path, damage: str) -> None:
    attach = '\n    open(case.id, "w").write(case.id)\n    evidence.attach(case.id)\n'
    project = audit_project(tmp_path, AUDIT + attach)
    run_pytest(project)
    folder = runs(project)[0]
    whole = measured(last_run(project))
    if damage.startswith("digit"):
        (path,) = folder.glob("rows/*_b-*.jsonl" if damage.endswith("row") else "ledger/*.jsonl")
        lines = path.read_bytes().splitlines(keepends=True)
        at = 0 if damage.endswith("row") else next(i for i, x in enumerate(lines) if b"metric" in x and b"[b]" in x)
        lines[at] = re.sub(rb"(:-?)([0-9])", lambda digit: digit[1] + (b"1" if digit[2] != b"1" else b"2"), lines[at])
    elif damage in ("metric", "rows"):
        (path,) = folder.glob("ledger/*.jsonl")
        lines = path.read_bytes().splitlines(keepends=True)
        at = next(i for i, x in enumerate(lines) if f'"kind":"{damage}"'.encode() in x and b"[b]" in x)
        lines[at] = lines[at][:30] + b"\n"
    else:
        pattern = "rows/*_b-*.jsonl" if damage == "row file" else "artifacts/*_b-*/*"
        (path,) = folder.glob(pattern)
        lines = [path.read_bytes()[:-9]]
    path.write_bytes(b"".join(lines))
    done = run_pytest(project, "--resume", folder.name)
    assert done.counts == {"passed": 1, "resumed": 2}
    assert measured(last_run(project)) == whole


OF_MODULES = """
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate


@pytest.fixture(scope="module", autouse=True)
def told():
    with open("told", "a") as file:
        print(__name__, "begins", file=file)
    yield
    with open("told", "a") as file:
        print(__name__, "ends", file=file)


@pytest.mark.bias
@cases([Case("again", {}), Case("stands", {})])
def test_one(case, evidence):
    if case.id == "again":
        pytest.skip("not here")
    evidence.metric("bias.gap", Estimate(0.5, n=3))
"""


def test_what_a_module_set_up_is_torn_down_behind_a_case_that_stands(tmp_path: Path) -> None:
    project = audit_project(tmp_path, OF_MODULES, "test_first")
    (project / "test_second.py").write_text(OF_MODULES)
    first = run_pytest(project)
    told = (project / "told").read_text()
    (project / "told").unlink()
    again = run_pytest(project, "--resume", last_run(project).run_id)
    assert again.code == first.code == 0, again.output
    assert again.counts == {"skipped": 2, "resumed": 2}
    assert (project / "told").read_text() == told


def test_a_run_is_held_before_it_is_read(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote it until then has ended: what this call takes for open is."""
    run = RunFolder(tmp_path / "20260101-000000-0000")
    run.create()
    read: list[Path] = []

    def reading(folder: Path) -> Run:
        with pytest.raises(UsageError, match="is being written by another process"):
            hold(run)
        read.append(folder)
        return read_run(folder)

    monkeypatch.setattr(from_options, "read_run", reading)
    monkeypatch.setattr(pytestconfig.option, "lm_audit_resume", str(run.path))
    earlier, release = from_options._earlier(pytestconfig, tmp_path)
    assert earlier is not None and release is not None and read == [run.path]
    release()
    hold(run)()
