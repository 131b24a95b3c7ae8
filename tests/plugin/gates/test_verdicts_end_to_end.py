"""A gate shows alike in exit code, terminal, JUnit and run store; controls always gate."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lm_audit.runstore.voids import void_reason
from tests.plugin.toy_audit import AUDIT, audit_project, last_run, outcomes, run_pytest, runs

GATES = "[bias.gap]\nmax = 0.5\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "gates.toml").write_text(GATES)
    return audit_project(tmp_path)


def words(project: Path) -> dict[str, list[str]]:
    return {case.case_id[-2]: [verdict.word for verdict in case.verdicts] for case in last_run(project).cases}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "parallel"])
def test_a_missed_gate_fails_its_case_once(project: Path, workers: tuple[str, ...]) -> None:
    done = run_pytest(project, "--gates", "gates.toml", "--junitxml", "junit.xml", "-v", *workers)
    assert done.code == 1
    assert "gate bias.gap <= 0.5 missed: 0.80 [0.70, 0.90] is beyond the limit" in done.output
    assert "1 failed, 1 passed, 1 undecided" in done.output
    assert words(project) == {"a": ["met"], "b": ["undecided"], "c": ["missed"]}
    assert outcomes(last_run(project)) == {"a": "passed", "b": "passed", "c": "failed"}
    junit = ElementTree.parse(project / "junit.xml").getroot()
    failures = [case.get("name") for case in junit.iter("testcase") if case.find("failure") is not None]
    assert failures == ["test_gap[c]"]
    properties = {node.get("name"): node.get("value") or "" for node in junit.iter("property")}
    assert json.loads(properties["lm_audit_metrics"])["bias.gap"]["n"] == 100


def test_report_only_shows_a_miss_without_failing(project: Path) -> None:
    done = run_pytest(project, "--gates", "gates.toml", "--report-only", "-v")
    assert done.code == 0
    assert "1 missed" in done.output and "MISSED" in done.output
    assert words(project)["c"] == ["missed"]
    assert outcomes(last_run(project))["c"] == "passed"


def test_undecided_may_fail(project: Path) -> None:
    done = run_pytest(project, "--gates", "gates.toml", "--undecided", "fail")
    assert done.code == 1
    assert "2 failed, 1 passed" in done.output


def test_an_unknown_metric_is_an_error_that_suggests_the_nearest(project: Path) -> None:
    (project / "gates.toml").write_text("[bias.gpa]\nmax = 1\n")
    for workers in ((), ("-n", "2")):
        done = run_pytest(project, "--gates", "gates.toml", *workers)
        assert done.code == 1
        assert "no case recorded a metric of that name; did you mean 'bias.gap'?" in done.output
        assert set(outcomes(last_run(project)).values()) == {"passed"}


def test_gates_of_an_absent_model_are_refused_before_anything_runs(project: Path) -> None:
    (project / "gates.toml").write_text('[bias.gap]\nmax = 1\nmodels = ["candidat"]\n')
    done = run_pytest(project, "--gates", "gates.toml", "--model", "candidate=tiny")
    assert done.code == 4
    assert "models names 'candidat', which this run does not audit; did you mean 'candidate'?" in done.output
    assert not (project / "reports").exists()


def test_a_misspelt_audit_or_key_is_found_before_anything_runs(project: Path) -> None:
    for text, hint in (("[biass.gap]\nmax = 1", "'bias'"), ("[bias.gap]\nmaxi = 1", "'max'")):
        (project / "gates.toml").write_text(text)
        done = run_pytest(project, "--gates", "gates.toml")
        assert done.code == 4
        assert f"did you mean {hint}?" in done.output
    assert not (project / "reports").exists()


def test_a_shard_is_not_blamed_for_gates_of_cases_in_other_shards(project: Path) -> None:
    (project / "gates.toml").write_text('[bias.gap]\nmax = 1\ncases = "*c*"\n')
    codes = [run_pytest(project, "--gates", "gates.toml", "--shard", f"{part}/3").code for part in (1, 2, 3)]
    assert codes == [0, 0, 0]


def test_gates_of_other_audits_do_not_disturb(project: Path) -> None:
    (project / "gates.toml").write_text("[leakage.rate]\nmax = 0.1\n[bias.gap]\nmax = 1\n")
    assert run_pytest(project, "--gates", "gates.toml").code == 0


def test_a_glob_that_matches_no_case_is_an_error(project: Path) -> None:
    (project / "gates.toml").write_text('[bias.gap]\nmax = 1\ncases = "*nothing*"\n')
    done = run_pytest(project, "--gates", "gates.toml")
    assert done.code == 1
    assert "cases = '*nothing*' matches none" in done.output


def test_a_known_miss_can_be_an_expected_failure_even_when_only_reporting(tmp_path: Path) -> None:
    source = AUDIT.replace("@pytest.mark.bias", '@pytest.mark.xfail(strict=True, reason="known")\n@pytest.mark.bias')
    (tmp_path / "gates.toml").write_text("[bias.gap]\nmax = 0.05\n")
    audit_project(tmp_path, source)
    for more in ((), ("--report-only",)):
        done = run_pytest(tmp_path, "--gates", "gates.toml", *more)
        assert (done.code, done.counts) == (0, {"xfailed": 3})
        assert words(tmp_path)["a"] == ["missed"]


CONTROLS = """
import pytest
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("plant", control="positive"), Case("silent", control="negative")])
def test_control(case, evidence):
    evidence.control(case.control, passed=case.id == "silent", expected="a gap over 1", observed="0.2")
"""


def test_a_failed_control_fails_its_case_and_voids_its_audit(tmp_path: Path) -> None:
    audit_project(tmp_path, CONTROLS)
    done = run_pytest(tmp_path, "--report-only")
    assert done.code == 1
    assert "positive control failed: expected a gap over 1, observed 0.2" in done.output
    run = last_run(tmp_path)
    assert outcomes(run) == {"plant": "failed", "silent": "passed"}
    assert "expected a gap over 1" in (void_reason(run, "bias", None) or "")
    assert [case.control_role for case in run.cases] == ["positive", "negative"]
    assert run_pytest(tmp_path, "-m", "control", "-k", "silent").code == 0


PLANTED = """
import pytest
from lm_audit.evidence import Control, Evidence
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

GAP = Estimate(0.9, 0.8, 1.0, n=100, method="toy")

@pytest.mark.bias
@cases([Case("plant", control="positive"), Case("silent", control="negative")])
def test_control(case, evidence):
    evidence.metric("bias.gap", GAP)
    evidence.control(case.control, passed=True, expected="a gap", observed="0.9")

@pytest.mark.bias
@cases([Case("unmarked")])
def test_control_of_its_own(case, evidence):
    evidence.record(Evidence("bias", {"bias.gap": GAP}, control=Control("positive", True, "a gap", "0.9")))

@pytest.mark.bias
@cases([Case("real", {}), Case("toy", {}, toy=True)])
def test_gap(case, evidence):
    evidence.metric("bias.gap", GAP)

@pytest.mark.bias
@pytest.mark.control
@cases([Case("gated-only")])
def test_planted_only(case, evidence):
    evidence.metric("bias.planted", GAP)
"""


def test_a_gate_never_judges_a_control_and_a_toy_is_named(tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text(GATES)
    audit_project(tmp_path, PLANTED)
    rounds = (((), {"failed": 1, "passed": 4, "missed": 1}), (("--resume", "LAST"), {"failed": 1, "resumed": 5}))
    for more, counts in rounds:
        words = [runs(tmp_path)[-1].name if word == "LAST" else word for word in more]
        done = run_pytest(tmp_path, "--gates", "gates.toml", *words)
        assert (done.code, done.counts) == (1, counts)
        run = last_run(tmp_path)
        judged = {case.case_id.partition("[")[2][:-1]: case for case in run.cases}
        assert outcomes(run) == {
            "plant": "passed", "silent": "passed", "unmarked": "passed", "gated-only": "passed",
            "real": "failed", "toy": "passed",
        }  # fmt: skip
        assert {name for name, case in judged.items() if case.verdicts} == {"real", "toy"}
        assert "BUILT-IN TOY" in judged["toy"].verdicts[0].reason
        assert "BUILT-IN TOY" not in judged["real"].verdicts[0].reason
        assert judged["toy"].toy and not judged["real"].toy
        assert void_reason(run, "bias", None) is None
        assert [verdict.word for case in judged.values() for verdict in case.verdicts] == ["missed", "missed"]
        assert "gates: 2 missed" in done.output
        assert "BUILT-IN TOY, decides nothing: gap (gap › toy)" in done.output


def test_a_toy_alone_decides_no_exit_code_and_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text("[bias.gap]\nmax = 0.5\n")
    audit_project(tmp_path, PLANTED.replace('Case("real", {}), ', ""))
    for more in ((), ("--undecided", "fail"), ("--resume", "LAST")):
        words = [runs(tmp_path)[-1].name if word == "LAST" else word for word in more]
        done = run_pytest(tmp_path, "--gates", "gates.toml", *words)
        assert done.code == 0
        assert "No model was judged: only the built-in toy was measured." in done.output
        assert "BUILT-IN TOY, decides nothing: gap" in done.output and "gates: 1 missed" in done.output
        case = next(case for case in last_run(tmp_path).cases if case.toy)
        assert [verdict.word for verdict in case.verdicts] == ["missed"]


def test_a_gate_that_only_controls_could_meet_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text("[bias.planted]\nmax = 0.5\n")
    done = run_pytest(audit_project(tmp_path, PLANTED), "--gates", "gates.toml")
    assert done.code == 1
    assert "a gate never judges a control" in done.output


OVERWRITTEN = """
import pytest
from lm_audit.evidence import Control, Evidence
from lm_audit.plugin import Case, cases

CONTROLS = [Control("positive", False, "a gap", "none"), Control("positive", True, "a gap", "a gap")]

@pytest.mark.bias
@cases([Case("failed-first", {"order": 1}, control="positive"), Case("failed-last", {"order": -1}, control="positive")])
def test_control(case, evidence):
    for control in CONTROLS[::case.params["order"]]:
        evidence.record(Evidence("bias", control=control))
"""


def test_a_failed_control_that_a_later_one_follows_stays_failed(tmp_path: Path) -> None:
    audit_project(tmp_path, OVERWRITTEN)
    done = run_pytest(tmp_path)
    assert (done.code, done.counts) == (1, {"failed": 2})
    run = last_run(tmp_path)
    assert all(case.last.control is not None and not case.last.control.passed for case in run.cases)
    assert "observed none" in (void_reason(run, "bias", None) or "")
    again = run_pytest(tmp_path, "--resume", run.run_id)
    assert (again.code, again.counts) == (1, {"failed": 2})
