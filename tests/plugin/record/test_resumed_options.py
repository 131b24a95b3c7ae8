"""One run holds one measurement: what a resumed call states otherwise is refused, what it leaves out is the run's."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.options.audit_options import audit_options, option_owners
from lm_audit.plugin.options.model_choice import parse_choices
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.record.earlier import Earlier
from lm_audit.plugin.record.resume import check_same
from tests.plugin.toy_audit import AUDIT, ONLY_A, audit_project, last_run, outcomes, run_pytest, runs

OTHER_VALUE = {
    "--bias-grid": "g.toml", "--bias-mode": "raw", "--bias-boundary": "ws", "--bias-margin": "0.25",
    "--bias-calibration": "pmi", "--faithfulness-samples": "s.jsonl", "--attribution-method": "ifr",
    "--deletion-steps": "0", "--deletion-baseline": "mean", "--attribution-hops": "0", "--faithfulness-chat": None,
    "--benchmark": "b.csv", "--leakage-columns": "answer=K", "--leakage-limit": "3", "--leakage-clean": "c.csv",
    "--leakage-cut": "word", "--leakage-mode": "raw", "--leakage-orders": "2", "--needle-lengths": "256",
    "--needle-depths": "2", "--needle-samples": "2", "--needle-tokens": "20", "--needle-preset": "niah_single_1",
    "--needle-haystack": "h.txt", "--needle-language": "zh", "--needle-template": "base", "--needle-boundary": "word",
    "--needle-windows": "shared", "--needle-folder": "folder", "--needle-scorer": "any", "--needle-threshold": "0.5",
    "--adaptive": None, "--needle-precision": "0.1", "--stages": "base=tiny", "--extraction-manifest": "m.jsonl",
    "--bias-requests": "r.toml", "--bias-swaps": "s.toml",
    "--manifest": "m.jsonl", "--member-texts": "in.txt", "--held-out-texts": "out.txt",
}  # fmt: skip
"""Of each option of an audit a value that is not its default."""

TOLD = '    evidence.parameter("options", run_options.audit)\n'
TELLING = AUDIT.replace("evidence, audit_seed", "evidence, audit_seed, run_options").replace(
    '    evidence.parameter("seed"', f'{TOLD}    evidence.parameter("seed"'
)
"""The toy audit, which tells what the audits' options are."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return audit_project(tmp_path)


def test_every_option_of_an_audit_has_another_value_here() -> None:
    assert OTHER_VALUE.keys() == {option.flag for option in audit_options()}


@pytest.mark.parametrize("audit", ["bias", "faithfulness", "leakage", "needle", "privacy"])
def test_another_value_of_an_audits_option_is_refused_by_name(tmp_path: Path, audit: str) -> None:
    project = audit_project(tmp_path, AUDIT.replace("mark.bias", f"mark.{audit}"))
    run_pytest(project, "--model", "tiny", ONLY_A)
    earlier = Earlier(last_run(project))
    devices = tuple(earlier.options["devices"])
    defaults = {option.name: option.default for option in audit_options()}
    same = RunOptions(models=parse_choices(["tiny"]), devices=devices, audit=defaults)
    check_same(earlier, same)
    for option in audit_options():
        value = option.type(OTHER_VALUE[option.flag] or "") if option.action != "store_true" else True
        other = replace(same, audit={**defaults, option.name: [value] if option.action == "append" else value})
        if audit not in option_owners()[option.name]:
            check_same(earlier, other)
            continue
        before = f"no {option.flag}" if option.default in (None, False) else f"{option.flag} {option.default}"
        with pytest.raises(UsageError, match=f"that run has {before}, this call {option.flag}"):
            check_same(earlier, other)


def test_a_default_that_is_given_is_another_value_too(project: Path) -> None:
    run_pytest(project, "--bias-margin", "0.25", "--bias-boundary", "ws", ONLY_A)
    for given, then in (("--bias-margin 0.5", "--bias-margin 0.25"), ("--bias-boundary none", "--bias-boundary ws")):
        done = run_pytest(project, "--resume", last_run(project).run_id, *given.split())
        assert done.code == 4 and f"that run has {then}, this call {given}" in done.output, done.output


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_options_left_out_are_those_of_the_run_whatever_their_default(tmp_path: Path, workers: str) -> None:
    project = audit_project(tmp_path, TELLING)
    given = ["--bias-margin", "0.25", "--needle-windows", "shared", "--deletion-steps", "0", "--attribution-hops", "0"]
    run_pytest(project, *given, ONLY_A)
    done = run_pytest(project, "--resume", last_run(project).run_id, "-n", workers)
    assert (done.counts["passed"], done.counts["resumed"]) == (2, 1), done.output
    told = [case.last.parameters["options"] for case in last_run(project).cases]
    assert len(told) == 3 and told[0] == told[1] == told[2]
    values = {"bias_margin": 0.25, "needle_windows": "shared", "deletion_steps": 0, "attribution_hops": 0}
    assert {name: told[0][name] for name in values} == values


def test_a_model_is_inherited_whatever_its_name(project: Path) -> None:
    run_pytest(project, "--model", "tiny:5", ONLY_A)
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.counts == {"passed": 2, "resumed": 1}, done.output


def stated(project: Path) -> dict[str, Any]:
    options: dict[str, Any] = dict(last_run(project).metadata["options"])
    return options


def test_what_joins_a_run_is_stated_and_inherited(project: Path) -> None:
    run_pytest(project, "--data", "own=pytest.ini", "--tag", "first", ONLY_A)
    run_id = last_run(project).run_id
    more = ["--data", "bbq=conftest.py", "--needle-lengths", "256", "--tag", "second"]
    assert run_pytest(project, "--resume", run_id, *more).code == 0
    third = run_pytest(project, "--resume", run_id)
    assert third.counts["resumed"] == 3 and "passed" not in third.counts, third.output
    assert stated(project)["data"] == {"own": "pytest.ini", "bbq": "conftest.py"}
    assert stated(project)["audit"]["needle_lengths"] == "256"
    assert stated(project)["tags"] == ["first", "second"]
    assert sorted(stated(project)["inputs"]) == ["--data bbq conftest.py", "--data own pytest.ini"]


def test_the_models_of_all_sessions_are_stated(project: Path) -> None:
    run_pytest(project, "--model", "a=tiny", "--model", "b=tiny:3", ONLY_A)
    assert run_pytest(project, "--resume", last_run(project).run_id, "--model", "b=tiny:3").code == 0
    assert stated(project)["models"] == {"a": "tiny", "b": "tiny:3"}


@pytest.mark.parametrize(
    ("damage", "option"),
    [
        ("edited", "--bias-grid=data.csv"),
        ("lost", "--data=own=data.csv"),
        pytest.param("lost", "--bias-grid=data.csv", marks=pytest.mark.slow),
        pytest.param("edited", "--data=own=data.csv", marks=pytest.mark.slow),
    ],
)
def test_a_file_of_an_option_that_changed_is_refused(project: Path, option: str, damage: str) -> None:
    data = project / "data.csv"
    data.write_text("one")
    run_pytest(project, option, ONLY_A)
    data.write_text("two") if damage == "edited" else data.unlink()
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.code == 4 and "data.csv names is not what it was in that run" in done.output, done.output
    data.write_text("one")
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert (done.counts["passed"], done.counts["resumed"]) == (2, 1), done.output


def test_the_copy_of_a_large_file_is_the_same_file(project: Path) -> None:
    data = project / "data.csv"
    data.write_bytes(b"x" * (9 << 20))
    run_pytest(project, "--data", "own=data.csv", ONLY_A)
    os.utime(data, (1, 1))
    assert run_pytest(project, "--resume", last_run(project).run_id).code == 0
    data.write_bytes(b"y" * (9 << 20))
    assert run_pytest(project, "--resume", last_run(project).run_id).code == 4


GATES = "[bias.gap]\nmax = 0.5\n"


def test_gates_left_out_are_those_of_the_run(project: Path) -> None:
    (project / "gates.toml").write_text(GATES)
    run_pytest(project, "--gates", "gates.toml", ONLY_A)
    run_id = last_run(project).run_id
    done = run_pytest(project, "--resume", run_id)
    assert done.code == 1 and "gate bias.gap <= 0.5 missed" in done.output
    assert outcomes(last_run(project)) == {"a": "passed", "b": "passed", "c": "failed"}
    (project / "gates.toml").unlink()
    done = run_pytest(project, "--resume", run_id)
    assert done.code == 4 and "gates.toml" in done.output


def test_how_gates_decide_is_inherited_with_them(project: Path) -> None:
    (project / "gates.toml").write_text(GATES)
    run_pytest(project, "--gates", "gates.toml", "--report-only", "--undecided", "fail", ONLY_A)
    assert run_pytest(project, "--resume", last_run(project).run_id).code == 0
    options = last_run(project).metadata["sessions"][-1]["options"]
    assert (options["gates"], options["report_only"], options["undecided"]) == ("gates.toml", True, "fail")
    (project / "own.toml").write_text(GATES)
    assert run_pytest(project, "--resume", last_run(project).run_id, "--gates", "own.toml").code == 1


def test_a_gate_on_a_model_of_the_run_that_this_call_leaves_out_holds(project: Path) -> None:
    (project / "gates.toml").write_text(f'{GATES}models = ["a"]\n')
    run_pytest(project, "--model", "a=tiny", "--model", "b=tiny:3", "--gates", "gates.toml", ONLY_A)
    done = run_pytest(project, "--resume", last_run(project).run_id, "--model", "b=tiny:3")
    assert done.code == 0, done.output


def test_a_copied_run_is_a_run_of_its_own(project: Path) -> None:
    run_pytest(project, ONLY_A)
    (first,) = runs(project)
    copy = shutil.copytree(first, first.with_name("copy"))
    before = {path.name: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    done = run_pytest(project, "--resume", "copy")
    assert done.counts == {"passed": 2, "resumed": 1}, done.output
    assert {path.name: path.read_bytes() for path in first.rglob("*") if path.is_file()} == before
    assert json.loads((copy / "run.json").read_text())["run_id"] == "copy"


def test_a_file_that_no_case_of_the_run_read_may_change(project: Path) -> None:
    data = project / "data.txt"
    data.write_text("one")
    run_pytest(project, "--needle-haystack=data.txt", ONLY_A)
    data.write_text("two")
    done = run_pytest(project, "--resume", last_run(project).run_id)
    assert done.code == 0 and done.counts["passed"] == 3, done.output
