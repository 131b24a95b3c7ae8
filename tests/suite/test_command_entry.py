"""``lm-audit`` finds its sub-commands and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lm_audit import cli
from lm_audit.errors import DataError


def test_every_commands_module_registers_under_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert list(cli.command_modules())
    assert "merge" in shown and "models" in shown


def test_an_error_of_the_harness_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def parser() -> argparse.ArgumentParser:
        made = argparse.ArgumentParser()
        made.set_defaults(run=fails)
        return made

    def fails(arguments: argparse.Namespace) -> int:
        raise DataError("not a number", file="a.csv", row=3)

    monkeypatch.setattr(cli, "build_parser", parser)
    assert cli.main([]) == 2
    assert capsys.readouterr().err == "lm-audit: a.csv, row 3: not a number\n"


def test_without_a_command_it_says_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([])
    assert stopped.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out.startswith("pytest-lm-audit ")


@pytest.mark.parametrize("command", ["plan", "list", "run"])
def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cli.main([command]) == 2
    assert "the folder that this was called in is gone; change into another one" in capsys.readouterr().err
