"""Where results are to be written is checked before the work that makes them, by every command that writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import UsageError
from lm_audit.shared.textfiles.outputs import check_output_file, check_output_folder


def test_files_and_folders_that_can_be_written(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("kept")
    assert check_output_file(there, "--json") == there and there.read_text() == "kept"
    check_output_file(tmp_path / "new.json", "--json")
    check_output_folder(tmp_path / "a" / "b", "--output")
    assert [path.name for path in tmp_path.iterdir()] == ["there.json"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "is a folder"),
        ("absent/x.json", "there is no folder"),
        ("file/x.json", "there is no folder"),
        ("n" * 300, "name too long"),
        ("nul\0", "null"),
    ],
)
def test_files_that_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=f"(?i)--json .*{reason}"):
        check_output_file(tmp_path / name, "--json")


def test_a_pipe_or_a_device_is_no_file_to_write(tmp_path: Path) -> None:
    """Opened, a pipe would wait for its reader; replaced, a device would be gone."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link", "/dev/null"):
        with pytest.raises(UsageError, match="is a pipe or a device"):
            check_output_file(tmp_path / name, "--json")


@pytest.mark.parametrize("name", ["file", "file/below", "n" * 300, "nul\0"])
def test_folders_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--output "):
        check_output_folder(tmp_path / name, "--output")


def test_a_closed_place_is_told() -> None:
    with pytest.raises(UsageError, match=r"--json .*cannot be written"):
        check_output_file("/proc/x.json", "--json")
    with pytest.raises(UsageError, match=r"--output .*cannot be written"):
        check_output_folder("/proc/x", "--output")


COMMANDS = [
    ("needle", "score", "absent-grid", "absent.jsonl", "--json", "{bad}/x.json"),
    ("needle", "build", "--save-dir", "{bad}", "--target-length", "1000", "--length-interval", "500",
     "--num-positions", "3", "--num-samples", "1", "--tokenizer", "absent-tokenizer"),
    ("privacy", "canaries", "--smoke", "--output", "{bad}"),
    ("privacy", "canaries", "--smoke", "--output", "{good}", "--text", "{bad}/x.txt"),
    ("privacy", "run", "--smoke", "--output", "{bad}/x"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=range(5))
def test_commands_say_so_before_they_read_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    bad, good = tmp_path / "file", tmp_path / "good"
    bad.write_text("")
    code = main([word.format(bad=bad, good=good) for word in command])
    option = next(flag for flag in ("--json", "--text", "--save-dir", "--output") if flag in command)
    told = capsys.readouterr()
    assert code == 2 and f"{option} " in told.err and "absent" not in told.err
    assert not good.exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("compare", "a", "b", "--html", "x\ud800"), "is no name of a file"),
        (("report", "a", "--reports", "s3://bucket/runs"), "is an address"),
        (("merge", "a", "-o", " "), "names no file or folder"),
        (("needle", "score", "grid", "https://host/x.jsonl"), "is an address"),
        (("needle", "score", "grid", "x.jsonl", "--json", ""), "names no file or folder"),
        (("needle", "score", "gr\0id", "x.jsonl"), "holds a NUL"),
        (("needle", "build", "--save-dir", "s3://bucket/x"), "is an address"),
        (("privacy", "corpus", "--documents-path", ""), "names no file or folder"),
        (("privacy", "corpus", "--documents-path", "hf://a/b"), "is an address"),
        (("models", "--tokenizer", "tiny"), "--tokenizer does nothing without the SPEC"),
        (("models", "--allow-insecure"), "--allow-insecure does nothing without the SPEC"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_paths_and_options_that_name_nothing(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], message: str
) -> None:
    try:
        code: object = main(command)
    except SystemExit as stopped:  # argparse ends so
        code = stopped.code
    assert code == 2 and message in capsys.readouterr().err
