"""A misspelt marker or option is told with the one that was meant; other calls of pytest hear nothing of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lm_audit.cli import main
from lm_audit.plugin.audit_cases.suite import SHIPPED, suite_arguments, suite_call
from lm_audit.plugin.options import hints
from lm_audit.plugin.options.audit_options import audit_names
from tests.plugin.toy_audit import AUDIT, audit_project, run_pytest
from tests.plugin.toy_run import write_project

SUITE = Path(__file__).resolve().parents[3] / "evals"
PLAIN = "def test_one():\n    pass\n"
MEANT = "no marker is called 'bais' (did you mean 'bias'?)"


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize(("strict", "code"), [("true", 4), ("false", 5)])
def test_a_misspelt_marker_is_told_and_begins_no_run(
    tmp_path: Path, workers: tuple[str, ...], strict: str, code: int
) -> None:
    project = audit_project(tmp_path, AUDIT)
    done = run_pytest(project, "-m", "bais", "-o", f"strict_markers={strict}", *workers)
    assert (done.code, MEANT in done.output) == (code, True), done.output
    assert "INTERNALERROR" not in done.output and not (tmp_path / "reports").exists()


def test_a_marker_like_none_of_ours_is_refused_as_pytest_does(tmp_path: Path) -> None:
    """pytest tells of a finished collection also where it refuses the selection: no run begins there."""
    done = run_pytest(audit_project(tmp_path, AUDIT), "-m", "xyz", "-o", "strict_markers=true")
    assert done.code == 4 and "Unknown marker(s) in '-m' expression: xyz" in done.output
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-m", "bias and ("), "Wrong expression passed to '-m': bias and (: at column 11"),
        (("-k", "x y"), "Wrong expression passed to '-k': x y: at column 3"),
        (("-k", "not " * 5000 + "x"), "'-k': it is nested too deeply"),
        (("-n", "9" * 30), "at most 1024 workers"),
        (("-n", "1025"), "-n 1025: at most 1024 workers"),
        (("-n", "1", "--max-worker-restart", "nan"), "--max-worker-restart 'nan' is not a whole number"),
    ],
    ids=range(6),
)
def test_what_cannot_be_run_is_refused_before_anything_is_collected(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    write_project(tmp_path, test_module="raise AssertionError('collected')\n")
    done = run_pytest(tmp_path, *words)
    assert done.code == 4 and says in done.output, done.output
    assert "collected" not in done.output and "Traceback" not in done.output


@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.slow), ("-n", "1")])
def test_a_set_that_no_shipped_case_reads_is_refused(tmp_path: Path, workers: tuple[str, ...]) -> None:
    write_project(tmp_path)
    cases = f"{SUITE}/test_bias.py::test_minimal_probe"
    where = ("-c", "pytest.ini", "--rootdir", str(tmp_path), cases, "--model", "tiny")
    done = run_pytest(tmp_path, *where, "--data", "zzz=rows.jsonl", *workers)
    assert done.code == 4 and "--data zzz=...: no audit here knows a set of that name" in done.output, done.output
    assert "INTERNALERROR" not in done.output and "case_begin" not in ledger_text(tmp_path)


@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.slow), ("-n", "1")])
def test_a_set_that_a_case_of_one_s_own_may_read_is_a_warning(tmp_path: Path, workers: tuple[str, ...]) -> None:
    project = audit_project(tmp_path, AUDIT)
    done = run_pytest(project, "--data", "zzz=rows.jsonl", "-k", "nothing or not nothing", *workers)
    assert "--data zzz=...: no audit here knows a set of that name" in done.output and done.code == 0, done.output
    done = run_pytest(project, "--data", "zzz=rows.jsonl", "-W", "error::lm_audit.errors.DataWarning", *workers)
    assert done.code == 4 and "--data zzz=...: no audit here knows" in done.output, done.output
    assert "INTERNALERROR" not in done.output


def ledger_text(project: Path) -> str:
    """What the runs of a project put on record."""
    return "".join(path.read_text() for path in project.glob("reports/*/ledger/*.jsonl"))


def test_half_of_a_selection_that_is_misspelt_is_told_beside_what_ran(tmp_path: Path) -> None:
    done = run_pytest(audit_project(tmp_path, AUDIT), "-m", "bias or leekage", "-o", "strict_markers=false")
    assert done.code == 0 and "'leekage' (did you mean 'leakage'?)" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--model", "tiny"), "lm-audit: --model is --lm-audit-model here; the short names come with lm-audit run"),
        (("--lm-audit-modle=tiny",), "lm-audit: --lm-audit-modle: did you mean --lm-audit-model?"),
        (("--seeds", "3"), None),
        (("--modle", "tiny"), None),
    ],
)
def test_an_unknown_option_is_told_where_short_names_are_not_asked_for(
    tmp_path: Path, words: tuple[str, ...], told: str | None
) -> None:
    write_project(tmp_path, test_plain=PLAIN)
    (tmp_path / "conftest.py").write_text("")
    done = run_pytest(tmp_path, "-p", "lm_audit.plugin", *words)
    assert done.code == 4 and "unrecognized arguments" in done.output
    assert ("lm-audit:" in done.output) is (told is not None) and (told or "") in done.output


def test_a_folder_behind_an_option_that_pytest_took_for_one_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    told = {}
    monkeypatch.setattr(hints, "option_names", lambda config: {"--lm-audit-reports", "--lm-audit-resume"})
    monkeypatch.setattr(hints, "tell_beside_usage_errors", lambda config, name, text: told.update({name: text}))
    bare = type("Config", (), {"pluginmanager": type("None", (), {"has_plugin": staticmethod(lambda name: False)})})
    for words, advice in (
        (["--reports", "out", "--resume", "x"], "write --reports=out"),
        (["--reports", "absent", "--resume", "x"], None),
        (["--reports=out"], None),
    ):
        hints.prepare_refusal(cast(pytest.Config, bare), words)
        said = told["lm-audit"]
        assert said.count("the short names come with") == 1
        assert advice in said if advice else "write --" not in said


def with_workers(folder: Path, *places: str, pyargs: bool = False, workers: bool = True) -> pytest.Config:
    """What is asked of the config of a call that names places, with workers unless told otherwise."""
    plugins = {"dsession"} if workers else set()
    manager = SimpleNamespace(hasplugin=plugins.__contains__, has_plugin=lambda name: name == hints.SHORT_NAMES)
    made = SimpleNamespace(
        args=list(places),
        pluginmanager=manager,
        known_args_namespace=SimpleNamespace(pyargs=pyargs),
        invocation_params=SimpleNamespace(dir=folder),
        option=SimpleNamespace(markexpr=""),
        _iter_registered_markers=lambda: (),
    )
    return cast(pytest.Config, made)


def test_a_file_that_is_not_there_is_named_where_workers_would_collect(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("")
    for place in ("nowhere.py", "nowhere.py::test_x[a/b]", "../nowhere"):
        with pytest.raises(pytest.UsageError, match="file or directory not found: "):
            hints.refuse_absent_places(with_workers(tmp_path, "test_a.py", place))
    for fine in (
        with_workers(tmp_path, "test_a.py::test_x[a/b]", str(tmp_path), "."),
        with_workers(tmp_path, "lm_audit.evals", pyargs=True),
        with_workers(tmp_path, "nowhere.py", workers=False),
    ):
        hints.refuse_absent_places(fine)


@pytest.mark.parametrize(
    ("places", "code", "told"), [(("a.py::x",), 5, True), (("a.py",), 5, False), (("a.py::x",), 0, False)]
)
def test_names_that_workers_did_not_find_are_told(
    tmp_path: Path, places: tuple[str, ...], code: int, told: bool
) -> None:
    said: list[str] = []
    config = with_workers(tmp_path, *places)
    reporter = cast(pytest.TerminalReporter, SimpleNamespace(write_line=lambda line, **_: said.append(line)))
    hints.pytest_terminal_summary(reporter, code, config)
    assert ("found or selected by a.py::x" in "".join(said)) is told


def test_with_short_names_a_misspelt_one_is_told(tmp_path: Path) -> None:
    done = run_pytest(audit_project(tmp_path, AUDIT), "--modle", "tiny")
    assert done.code == 4 and "lm-audit: --modle: did you mean --model?" in done.output


def test_a_conftest_with_an_option_of_that_name_hears_nothing(tmp_path: Path) -> None:
    write_project(tmp_path, test_plain=PLAIN)
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--model')\n")
    done = run_pytest(tmp_path, "-p", "lm_audit.plugin", "--model", "x", "-m", "bais")
    assert done.code == 5 and "--lm-audit" not in done.output and "did you mean" not in done.output


def test_the_help_of_run_lists_our_options_by_audit_and_says_where_pytests_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "-m", "bias", "--help"]) == 0
    told = capsys.readouterr().out
    assert "pytest --help" in told and "--cache-clear" not in told and "--lm-audit-" not in told
    assert told.index("--model") < told.index("options of bias") < told.index("--bias-grid")
    assert all(f"options of {name}:" in told for name in audit_names())


def test_a_place_that_is_named_is_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_mine.py").write_text(PLAIN)
    (tmp_path / "gates.toml").write_text("")
    for words in (["test_mine.py"], ["test_mine.py::test_one", "-x"], ["--gates", "gates.toml", "test_mine.py"]):
        call = suite_call(words)
        assert call[-len(words) :] == words and "--pyargs" not in call
    for words in ([], ["--gates", "gates.toml"], ["-m", "bias"], ["--deselect", "test_mine.py::test_one"]):
        assert suite_call(words)[-len(words) - len(suite_arguments()) :] == [*suite_arguments(), *words]


def test_a_case_id_of_the_suite_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = suite_call(["evals/test_bias.py::test_x[a/b]"])[-1]
    assert place.endswith("::test_x[a/b]") and Path(place.partition("::")[0]).is_file()
    monkeypatch.setattr("lm_audit.plugin.audit_cases.suite._exists", lambda name: name == SHIPPED)
    assert suite_call(["evals/test_bias.py::test_x[a/b]"])[-2:] == ["--pyargs", f"{SHIPPED}.test_bias::test_x[a/b]"]


def test_an_open_quote_in_the_variable_of_pytest_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--seed='1")
    assert main(["run", "-m", "bias"]) == 2
    assert 'PYTEST_ADDOPTS="--seed=\'1" cannot be divided into words: No closing quotation' in capsys.readouterr().err
