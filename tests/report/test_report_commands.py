"""The commands of the report where what they are given is no use: one line and exit code 2, nothing harmed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lm_audit.cli import main
from tests.report.made_runs import MadeCase, share, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "reports" / "20260101-000000-0b0b"
    write_run(folder, [MadeCase("t.py::test_x[m@cpu-a]", "bias", "m", metrics={"bias.x": share(0.4)})])
    return folder


def test_a_comparison_is_not_written_over_a_pipe_or_a_device(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        assert main(["compare", str(run), str(run), "--html", str(name)]) == 2
        assert "is a pipe or a device" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize(("program", "says"), [("exit(3)", "exit code 3"), (None, "Permission denied")])
def test_an_allure_command_that_fails_is_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str | None, says: str
) -> None:
    allure = tmp_path / "allure"
    allure.write_text(f"#!{sys.executable}\n{program or ''}\n")
    allure.chmod(0o755 if program else 0o644)
    assert main(["allure", str(run), "--allure", str(allure)]) == 2
    assert f"made no report: {says}" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "8_0", "８０", "1e3", "", "99999999999"])
def test_ports_that_are_none(capsys: pytest.CaptureFixture[str], port: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["view", f"--port={port}"])
    assert ended.value.code == 2 and "--port" in capsys.readouterr().err
