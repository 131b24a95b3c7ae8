"""How gates and controls conclude a case, in this process: what it fails for, what is told, which gates held nothing.

``test_verdicts_end_to_end.py`` shows the same from outside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lm_audit.errors import UsageError
from lm_audit.evidence import Control
from lm_audit.gates.gate import Gate
from lm_audit.plugin.record.gating import control_message, failure, load_gates, pytest_report_teststatus, unheld
from lm_audit.report.page.states import case_state
from lm_audit.runstore.records import Attempt, CaseRecord, PlannedCase, Run, Verdict, VerdictWord
from lm_audit.stats.estimate import Estimate
from tests.plugin.toy_audit import AUDIT, MODEL_AUDIT, last_run
from tests.plugin.toy_run import write_project

WORDS: tuple[VerdictWord, ...] = ("met", "missed", "undecided")
MET, MISSED, OPEN = (Verdict("bias.gap", word, "<= 0.5", f"why {word}") for word in WORDS)


@pytest.mark.parametrize(
    ("verdicts", "report_only", "undecided_fails", "named"),
    [
        ([MET, OPEN], False, False, []),
        ([MET, MISSED, OPEN], False, False, [MISSED]),
        ([MET, MISSED, OPEN], False, True, [MISSED, OPEN]),
        ([MET, MISSED, OPEN], True, True, []),
        ([], False, True, []),
    ],
)
def test_a_case_fails_for_each_gate_that_it_missed_and_for_undecided_ones_where_that_is_asked(
    verdicts: list[Verdict], report_only: bool, undecided_fails: bool, named: list[Verdict]
) -> None:
    told = failure(verdicts, report_only=report_only, undecided_fails=undecided_fails)
    parts = [f"bias.gap <= 0.5 {one.word}: {one.reason}" for one in named]
    assert told == (f"gate {'; '.join(parts)}" if parts else None)


def test_every_control_that_failed_is_told_with_what_was_expected() -> None:
    controls = [Control("positive", False, "a gap", "none"), Control("negative", False, "silence", "noise")]
    told = (
        "positive control failed: expected a gap, observed none; negative control failed: expected silence, observed "
        "noise"
    )
    assert control_message(controls, "bias") == f"{told} (the numbers of this audit are void)"
    # The page voids no number of a case without an audit, nor may a line say so.
    assert control_message(controls, None) == f"{told} (it bears no audit's marker, so no number is void by it)"


def report(when: str = "call", outcome: str = "passed", verdict: str | None = None) -> pytest.TestReport:
    made = pytest.TestReport("t.py::x", ("t.py", 0, "x"), {}, outcome, None, when)  # type: ignore[arg-type]
    if verdict is not None:
        made.lm_audit_verdict = verdict  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("made", "letter"),
    [
        (report(verdict="missed"), ("missed", "g", ("MISSED", {"yellow": True}))),
        (report(verdict="undecided"), ("undecided", "u", ("UNDECIDED", {"yellow": True}))),
        (report(verdict="met"), None),
        (report(), None),
        (report(when="teardown", verdict="missed"), None),
        (report(outcome="failed", verdict="missed"), None),
    ],
)
def test_a_passed_case_that_missed_a_gate_or_left_it_open_is_counted_by_itself(
    made: pytest.TestReport, letter: object
) -> None:
    assert pytest_report_teststatus(made) == letter


def test_a_gate_of_a_misspelt_audit_is_refused_and_one_of_an_unknown_audit_is_not(tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text("[bias.gap.of.all]\nmax = 1\n[zebra.stripes]\nmax = 3\n")
    assert [gate.metric for gate in load_gates(str(path))] == ["bias.gap.of.all", "zebra.stripes"]
    assert load_gates(None) == ()
    path.write_text("[leakege.rate]\nmax = 1\n")
    with pytest.raises(UsageError) as caught:
        load_gates(str(path))
    assert str(caught.value) == (
        f"gates file {path}, [leakege.rate]: no audit is called 'leakege'; did you mean 'leakage'?"
    )


def case(
    case_id: str, *metrics: str, audit: str = "bias", model: str | None = "m", control: str | None = None
) -> CaseRecord:
    attempt = Attempt(1, "passed", "main", 1.0, metrics={name: Estimate(0.5, 0.4, 0.6, 50) for name in metrics})
    return CaseRecord(case_id, audit, model, "cpu", "f", attempt, control_role=control)


def run_of(*cases: CaseRecord) -> Run:
    plan = tuple(PlannedCase(one.case_id, one.audit, one.model, "cpu", one.control_role) for one in cases)
    return Run("r", Path(), 1, {}, cases, tuple(one.case_id for one in cases), plan=plan)


RUN = run_of(
    case("t.py::x[m@cpu-a]", "bias.gap"),
    case("t.py::x[n@cpu-b]", "bias.gap", "bias.only_n", model="n"),
    case("t.py::c[m@cpu-p]", "bias.planted", "bias.gap", control="positive"),
)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (Gate("bias.gap"), None),
        (Gate("bias.gap", cases="*-a"), None),
        (Gate("bias.gap", cases="n@cpu-b", models=("n", "o")), None),
        (Gate("bias.gap", models=("o",), cases="nothing"), None),
        (Gate("leakage.rate"), None),
        (Gate("leakage.rate.hard"), None),
        (Gate("bias.gpa"), "gate on 'bias.gpa': no case recorded a metric of that name; did you mean 'bias.gap'?"),
        (
            Gate("bias.max_min_disparty"),  # nothing near was recorded: the audit's table knows the name
            "gate on 'bias.max_min_disparty': no case recorded a metric of that name; "
            "did you mean 'bias.max_min_disparity'?",
        ),
        (Gate("zebra.stripes"), "gate on 'zebra.stripes': no case recorded a metric of that name"),
        (Gate("bias.planted"), "gate on 'bias.planted': only controls recorded it, and a gate never judges a control"),
        (
            Gate("bias.gap", cases="*-p]"),
            "gate on 'bias.gap': cases = '*-p]' matches none of the cases that recorded it, such as t.py::x[m@cpu-a]",
        ),
        (Gate("bias.only_n", cases="*-a"), "gate on 'bias.only_n': cases = '*-a' matches none"),
        (Gate("bias.gap", models=("m",), cases="n@*"), "gate on 'bias.gap': cases = 'n@*' matches none"),
    ],
)
def test_a_gate_that_was_held_against_nothing_is_a_problem_unless_its_audit_or_model_did_not_run(
    gate: Gate, problem: str | None
) -> None:
    found = unheld([Gate("bias.gap"), gate], RUN)
    if problem is None:
        assert found == []
    else:
        ((metric, told),) = found
        assert metric == gate.metric and told.startswith(problem)


@dataclass
class Said:
    """What a nested call of pytest gave: its exit code, and the reports of calls and of what belongs to no case."""

    code: int
    reports: list[pytest.TestReport]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    @property
    def of_no_case(self) -> dict[str, str]:
        """What failed though no test function of that name was there to run."""
        return {r.nodeid: str(r.longrepr) for r in self.reports if r.failed and r.when == "setup"}

    @property
    def failures(self) -> dict[str, str]:
        return {r.nodeid.rpartition("::")[2]: str(r.longrepr) for r in self.reports if r.failed}


@contextmanager
def only(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    yield
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


def nested(folder: Path, *arguments: str, plugin: Said | None = None) -> Said:
    said = plugin or Said(0, [])
    words = ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options", "-p", "no:faulthandler"]
    words += ["-q", "--import-mode=importlib", "--rootdir", str(folder), "-c", str(folder / "pytest.ini"), str(folder)]
    with only(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"):
        said.code = int(pytest.main([*words, *arguments], plugins=[said]))
    return said


EXPECTED = """
import pytest
from lm_audit.evidence import Control, Evidence
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

GAP = Estimate(0.9, 0.8, 1.0, n=100, method="toy")

@pytest.mark.xfail(strict=True, reason="known")
@pytest.mark.bias
def test_known(evidence):
    evidence.metric("bias.gap", GAP)

@pytest.mark.bias
@cases([Case("plant", control="positive"), Case("silent", control="negative")])
def test_control(case, evidence):
    evidence.metric("bias.gap", GAP)
    evidence.control(case.control, passed=case.id == "silent", expected="a gap over 1", observed="0.2")

@pytest.mark.bias
def test_control_of_its_own(evidence):
    evidence.record(Evidence("bias", {"bias.gap": GAP}, control=Control("positive", True, "a gap", "0.9")))

@pytest.mark.bias
@cases([Case("declared", control="negative")])
def test_control_that_only_measures(case, evidence):
    evidence.metric("bias.gap", GAP)

@pytest.mark.bias
@cases([Case("toy", toy=True)])
def test_toy(case, evidence):
    evidence.metric("bias.gap", GAP)

@pytest.mark.bias
def test_misnamed(evidence):
    evidence.headline("bias.gpa")
    evidence.metric("bias.gap", GAP)
    evidence.record(Evidence("bias", {"bias.other": GAP}, headline="bias.left_out"))

def test_that_is_no_audit():
    pass
"""


@pytest.mark.parametrize("report_only", [False, True])
def test_gates_and_controls_conclude_each_case_once(tmp_path: Path, report_only: bool) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text("[[bias.gap]]\nmax = 0.5\n[[bias.gap]]\nmin = 0.1\ncases = 'b'\n[bias.gpa]\nmax = 1\n")
    write_project(tmp_path, test_toy=AUDIT, test_more=EXPECTED)
    (tmp_path / "conftest.py").unlink()
    said = nested(tmp_path, "--gates", str(gates), *(["--report-only"] if report_only else []))
    run = last_run(tmp_path)
    verdicts = {one.case_id.rpartition("::")[2]: one.verdicts for one in run.cases}
    assert {name: [v.word for v in found] for name, found in verdicts.items() if found} == {
        "test_gap[a]": ["met"], "test_gap[b]": ["undecided", "met"], "test_gap[c]": ["missed"],
        "test_known": ["missed"], "test_toy[toy]": ["missed"],
    }  # fmt: skip
    assert {name for name, found in verdicts.items() if found and "TOY" in found[0].reason} == {"test_toy[toy]"}
    failures = said.failures
    never_held = failures.pop("[bias.gpa]")
    assert never_held == "gate on 'bias.gpa': no case recorded a metric of that name; did you mean 'bias.gap'?"
    assert failures.pop("test_control[plant]") == control_message(
        [Control("positive", False, "a gap over 1", "0.2")], "bias"
    )
    assert failures.pop("test_misnamed").endswith(
        "headline 'bias.gpa': the case recorded no metric of that name; did you mean 'bias.gap'?"
    )
    # What was measured on the toy fails nothing: it says nothing about a model.
    missed = {"test_gap[c]": "gate bias.gap <= 0.5 missed: 0.80 [0.70, 0.90] is beyond the limit"}
    assert failures == ({} if report_only else missed)
    causes = {one.case_id.rpartition("::")[2]: one.last.cause for one in run.cases if one.outcome == "failed"}
    gate = {} if report_only else dict.fromkeys(missed, "gate")
    assert {name: causes[name] for name in ("test_control[plant]", *gate)} == {"test_control[plant]": "control", **gate}
    assert said.code == 1


def test_gates_whose_globs_meet_in_a_selected_case_stop_the_call(tmp_path: Path) -> None:
    gates = tmp_path / "gates.toml"
    write_project(tmp_path, test_toy=AUDIT)
    (tmp_path / "conftest.py").unlink()
    gates.write_text("[[bias.gap]]\nmax = 0.5\ncases = '*[[]a]'\n[[bias.gap]]\nmax = 0.9\ncases = '*gap*'\n")
    assert nested(tmp_path, "--gates", str(gates)).code == pytest.ExitCode.USAGE_ERROR
    assert not list(tmp_path.glob("reports/*/ledger"))
    gates.write_text("[[bias.gap]]\nmax = 0.9\ncases = '*[[]a]'\n[[bias.gap]]\nmax = 0.9\ncases = '*[[]b]'\n")
    assert nested(tmp_path, "--gates", str(gates)).code != pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_a_gate_for_one_model_judges_that_model(tmp_path: Path) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text("[[bias.loglik]]\nmax = 0\nmodels = ['mine']\n[[bias.loglik]]\nmin = -1\nmodels = ['other']\n")
    write_project(tmp_path, test_model=MODEL_AUDIT)
    (tmp_path / "conftest.py").unlink()
    models = ("--model", "mine=tiny", "--model", "other=tiny", "--device", "cpu")
    assert nested(tmp_path, "-k", "short", "--gates", str(gates), *models).failures == {}
    judged = {one.model: [verdict.limit for verdict in one.verdicts] for one in last_run(tmp_path).cases}
    assert judged == {"mine": ["<= 0"], "other": [">= -1"]}


def test_a_shard_and_a_call_that_only_collects_blame_no_gate(tmp_path: Path) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text("[bias.gpa]\nmax = 1\n")
    write_project(tmp_path, test_toy=AUDIT)
    (tmp_path / "conftest.py").unlink()
    for more in (("--shard", "1/2"), ("--collect-only",)):
        said = nested(tmp_path, "--gates", str(gates), *more)
        assert (said.code, said.failures) == (0, {})


@dataclass
class Removed(Said):
    """A nested call whose run's ledger is removed when the last case has ended."""

    folder: Path = Path()

    @pytest.hookimpl(tryfirst=True)
    def pytest_lm_audit_loop_end(self) -> None:
        (ledger,) = self.folder.glob("reports/*/ledger")
        ledger.rename(self.folder / "taken away")


def told_of_gates(folder: Path, text: str, *arguments: str, plugin: Said | None = None) -> Said:
    """A call of the toy audit with a gates file of its own."""
    (folder / "gates.toml").write_text(text)
    write_project(folder, test_toy=AUDIT)
    (folder / "conftest.py").unlink()
    return nested(folder, "--gates", str(folder / "gates.toml"), *arguments, plugin=plugin)


def test_a_gate_that_held_nothing_is_an_error_of_the_gates_file_in_the_terminal_and_in_junit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "junit.xml"
    said = told_of_gates(tmp_path, "[bias.gpa]\nmax = 1\n", "-v", f"--junitxml={junit}")
    name = f"{tmp_path / 'gates.toml'}::[bias.gpa]"
    problem = "gate on 'bias.gpa': no case recorded a metric of that name; did you mean 'bias.gap'?"
    assert (said.code, said.of_no_case) == (1, {name: problem})
    (report,) = (r for r in said.reports if r.nodeid == name)
    assert (report.location, dict(report.keywords)) == ((name, None, name), {})
    shown = capsys.readouterr().out
    assert "3 passed, 1 error" in shown and problem in shown
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert [error.text for error in suite.iter("error")] == [problem]


def test_gates_of_a_run_whose_folder_has_gone_are_told_as_not_held(tmp_path: Path) -> None:
    said = told_of_gates(tmp_path, "[bias.gpa]\nmax = 1\n", plugin=Removed(0, [], tmp_path))
    ((name, problem),) = said.of_no_case.items()
    assert name == str(tmp_path / "gates.toml") and said.code == 1
    assert problem.startswith("StoreError: ") and "ledger" in problem


@pytest.mark.parametrize(("undecided", "failing"), [("pass", []), ("fail", ["test_gap[b]"])])
def test_an_undecided_gate_fails_where_that_is_asked(tmp_path: Path, undecided: str, failing: list[str]) -> None:
    said = told_of_gates(tmp_path, "[bias.gap]\nmax = 0.5\ncases = 'b'\n", "--undecided", undecided)
    assert list(said.failures) == failing


FULL = """
import errno, json, os
import pytest
from lm_audit.errors import ModelError
from lm_audit.plugin import Case, cases

def refused(text):
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if text is None else RuntimeError(text)
    except Exception as error:
        raise ModelError("the planted model cannot be kept") from error

FULL = {"python": None, "rust": "I/O error: No space left (os error 28)", "other": "No such file (os error 2)"}

@pytest.mark.bias
@cases([Case(name) for name in FULL])
def test_kept(case, evidence):
    if not os.path.exists("room"):
        refused(FULL[case.id])
"""


def test_a_case_that_a_full_disk_ended_is_an_error_and_runs_again_when_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_project(tmp_path, test_full=FULL))
    (tmp_path / "conftest.py").unlink()
    assert nested(tmp_path).code == 1
    run = last_run(tmp_path)
    assert [one.last.cause for one in run.cases] == ["store", "store", "exception"]
    assert {case_state(one).name for one in run.cases} == {"error"}
    (tmp_path / "room").touch()
    assert nested(tmp_path, "--resume", run.run_id).code == 1
    assert [one.outcome for one in last_run(tmp_path).cases] == ["passed", "passed", "failed"]
