"""``lm-audit list``: audits, cases, needs, sizes and options, without loading anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.planning.catalogue import catalogue
from lm_audit.planning.list_command import lines
from lm_audit.plugin.audit_cases.suite import suite_arguments

PLUGINS = ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options"]


def test_the_list_names_audits_cases_needs_sizes_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "-m", "needle", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (needle,) = found["audits"]
    assert needle["audit"] == "needle" and needle["page"] == "docs/needle.md" and needle["about"]
    assert 0 < found["sizes"]["smoke"] <= found["sizes"]["standard"] <= found["sizes"]["full"]
    assert len(needle["cases"]) == found["sizes"]["smoke"]
    assert "--needle-lengths" in {option["flag"] for option in needle["options"]}
    assert {"positive", "negative"} <= {case["control"] for case in needle["cases"]}
    assert any("generate" in case["needs"] for case in needle["cases"])
    text = "\n".join(lines(found))
    assert "cases by --size: smoke" in text and "positive" in text and "needs: " in text


def test_nothing_selected_is_an_empty_list() -> None:
    assert catalogue([*PLUGINS, *suite_arguments(), "-k", "no_such_case_at_all"])["audits"] == []


@pytest.mark.parametrize("word", ["leakage", "zzz"])
def test_what_selects_nothing_is_told(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", word]) == 2
    assert f"{word} selects no case; audits are picked by -m" in capsys.readouterr().err


REFUSED = {
    "misspelt": (("-m", "biass"), "no marker is called 'biass' (did you mean 'bias'?)"),
    "unknown": (("-m", "qqq"), "Unknown marker(s) in '-m' expression: qqq"),
    "broken": (("-m", "leakage and"), "Wrong expression passed to '-m'"),
    "absent": (("-m", "leakage", "--benchmark", "absent.csv"), "no such file or folder"),
}


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        pytest.param(
            command,
            *case,
            id=f"{name}-{command}",
            # Both commands collect in one place.
            marks=[pytest.mark.slow] if command == "plan" and name in ("unknown", "broken") else [],
        )
        for name, case in REFUSED.items()
        for command in ("list", "plan")
    ],
)
def test_what_pytest_refuses_after_collecting_is_refused(
    command: str, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *arguments]) == 2
    told = capsys.readouterr()
    assert says in told.err and "test_preference_grid" not in told.err and not told.out


@pytest.mark.parametrize("command", ["list", pytest.param("plan", marks=pytest.mark.slow)])
def test_a_folder_of_another_project_that_is_called_evals_changes_nothing(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "test_theirs.py").write_text("import a_library_that_is_theirs\n")
    told = []
    for folder in (tmp_path, Path(__file__).resolve().parents[3]):
        monkeypatch.chdir(folder)
        assert main([command, "-m", "bias", "-k", "grid", "--model", "tiny"]) == 0
        told.append(capsys.readouterr().out)
    assert "bias" in told[0] and told[0] == told[1]


@pytest.mark.parametrize("word", ["-h", "--help"])
@pytest.mark.parametrize("command", ["list", "plan"])
def test_help_among_words_of_pytest_is_that_of_the_command(
    command: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "-m", "bias", word]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: lm-audit {command} [--json] ") and "Nothing is run" in told
