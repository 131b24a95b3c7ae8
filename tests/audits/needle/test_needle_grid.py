"""Grids in folders: layout, resuming, parallel runs, refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import Popen

import pytest

from lm_audit.audits.needle import NeedleConfig, grid_samples, read_folder, write_grid
from lm_audit.audits.needle.haystack.sources import embedded_essay
from lm_audit.cli import main
from lm_audit.errors import DataError, UsageError
from lm_audit.models.text.tokenizer import Tokenizer
from tests.audits.needle.text.needle_tokenizers import small_tokenizer
from tests.models.small_models import save_small_llama

SMALL = {"target_length": 800, "length_interval": 400, "num_positions": 3, "num_samples": 2, "tokens_to_generate": 16}


def content(folder: Path) -> dict[str, bytes]:
    """Every sample file and the summary, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "metadata.json"
    }


@pytest.fixture
def tokenizer() -> Tokenizer:
    made: Tokenizer = small_tokenizer("byte-level")
    return made


def test_layout_and_fields(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written = write_grid(SMALL, tmp_path / "grid", tokenizer=tokenizer)
    files = sorted(path.relative_to(written.folder).as_posix() for path in written.folder.rglob("*.json*"))
    cells = [f"length_{n:06d}/position_{p:05d}.jsonl" for n in (400, 800) for p in (3333, 6667, 10000)]
    assert files == [*cells, "metadata.json", "summary.json"]
    record = json.loads((written.folder / cells[0]).read_text(encoding="utf-8").splitlines()[1])
    assert record["index"] == 1
    assert record["length"] == 400
    assert record["target_position"] == pytest.approx(100 / 3)
    for name in ("input", "outputs", "actual_length", "actual_position", "needle_token_position", "answer_prefix"):
        assert record[name] not in (None, "", [])
    assert {"haystack_type", "needle_type_k", "needle_type_v"} <= set(record["metadata"])
    assert "generation_time" not in json.dumps(record)
    assert not record["input"].endswith(record["answer_prefix"])
    metadata = json.loads((written.folder / "metadata.json").read_text(encoding="utf-8"))
    assert {"configuration", "generation_stats", "sample_distribution"} <= set(metadata)
    assert metadata["generation_stats"]["total_samples"] == 12
    assert metadata["generation_stats"]["generation_time"] >= 0


def test_every_preset_builds(tmp_path: Path, tokenizer: Tokenizer) -> None:
    from lm_audit.audits.needle import PRESETS

    for name in PRESETS:
        config = {**SMALL, "target_length": 1200, "length_interval": 1200, "num_samples": 1, "preset": name}
        write_grid(config, tmp_path / name, tokenizer=tokenizer)
        for sample in read_folder(tmp_path / name):
            assert 1198 <= sample.actual_length <= 1200
            wanted = PRESETS[name]["num_needle_q"] * PRESETS[name]["num_needle_v"]
            assert len(sample.outputs) == wanted
            assert len(sample.needles) == max(wanted, PRESETS[name]["num_needle_k"])
            for value in sample.outputs:
                assert sample.prompt.count(value) == 1


def test_samples_of_a_cell_differ_in_window_key_and_value(tokenizer: Tokenizer) -> None:
    config = NeedleConfig.from_mapping({**SMALL, "num_samples": 8, "target_length": 400, "num_positions": 1})
    samples = list(grid_samples(config, tokenizer))
    assert len({sample.outputs for sample in samples}) == 8
    assert len({sample.metadata["window_start"] for sample in samples}) >= 7


def test_shared_windows_are_the_same_at_all_depths(tokenizer: Tokenizer) -> None:
    config = NeedleConfig.from_mapping({**SMALL, "windows": "shared"})
    samples = list(grid_samples(config, tokenizer))
    for index in range(2):
        assert len({s.metadata["window_start"] for s in samples if s.index == index}) == 1


def test_two_processes_write_the_same_bytes(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_grid(SMALL, tmp_path / "one", tokenizer=tokenizer)
    write_grid(SMALL, tmp_path / "two", tokenizer=tokenizer, workers=2)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_stopped_run_goes_on_to_the_same_bytes(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_grid(SMALL, tmp_path / "whole", tokenizer=tokenizer)

    class Stop(Exception):
        pass

    def stop(cell: object, done: int, total: int) -> None:
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        write_grid(SMALL, tmp_path / "part", tokenizer=tokenizer, on_cell=stop)
    assert not (tmp_path / "part" / "summary.json").exists()
    written = write_grid(SMALL, tmp_path / "part", tokenizer=tokenizer)
    assert written.reused == 3
    assert content(tmp_path / "whole") == content(tmp_path / "part")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.splitlines(keepends=True)[0],
        lambda data: data + data,
        lambda data: b"",
        lambda data: b"\xff" + data,
    ],
    ids=["torn", "short", "doubled", "empty", "not-text"],
)
def test_damaged_cell_is_written_again(tmp_path: Path, tokenizer: Tokenizer, damage: Callable[[bytes], bytes]) -> None:
    write_grid(SMALL, tmp_path, tokenizer=tokenizer)
    before = content(tmp_path)
    path = tmp_path / "length_000400" / "position_06667.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    assert write_grid(SMALL, tmp_path, tokenizer=tokenizer).reused == 5
    assert content(tmp_path) == before


def test_folder_of_another_configuration_is_left_alone(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_grid(SMALL, tmp_path, tokenizer=tokenizer)
    before = content(tmp_path), (tmp_path / "metadata.json").read_bytes()
    with pytest.raises(UsageError, match="num_samples 2 instead of 3"):
        write_grid({**SMALL, "num_samples": 3}, tmp_path, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="another tokenizer"):
        write_grid(SMALL, tmp_path, tokenizer=small_tokenizer("tiktoken"))
    assert (content(tmp_path), (tmp_path / "metadata.json").read_bytes()) == before


def test_folder_with_other_files_is_left_alone(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(UsageError, match="not empty"):
        write_grid(SMALL, tmp_path, tokenizer=tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length_interval": 900}, "length interval 900 is larger than the target length 800"),
        ({"start_length": 900}, "start length 900 is above the target length 800"),
        ({"length_interval": 0}, "length interval is 0"),
        ({"num_positions": 102, "position_strategy": "random"}, "only 101"),
        ({"num_positions": 0}, "number of depths is 0"),
        ({"num_samples": 0}, "number of samples is 0"),
        ({"type_haystack": "grass"}, "type_haystack is 'grass'"),
        ({"type_needle_v": "colours"}, "type_needle_v is 'colours'"),
        ({"num_needle_q": 0}, "num_q is 0"),
        ({"preset": "niah_single_9"}, "preset 'niah_single_9' is unknown"),
        ({"colour": 1}, "unknown parameter 'colour'"),
        ({"position_strategy": "sigmoid"}, "strategy 'sigmoid' is unknown"),
        ({"windows": "bay"}, "windows is 'bay'"),
        ({"template": "chat"}, "has no chat template"),
        ({"template": "[USER] [/USER]"}, "holds {task_template} once"),
        ({"haystack": "no-such-file.txt"}, "no-such-file.txt"),
    ],
)
def test_bad_configuration_is_named_and_nothing_is_written(
    tmp_path: Path, tokenizer: Tokenizer, changes: dict[str, object], message: str
) -> None:
    folder = tmp_path / "grid"
    with pytest.raises((UsageError, DataError)) as caught:
        write_grid({**SMALL, **changes}, folder, tokenizer=tokenizer)
    assert message in str(caught.value)
    assert not folder.exists()


def test_length_that_does_not_fit_writes_nothing(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match="smallest feasible length"):
        write_grid({**SMALL, "start_length": 50}, tmp_path / "grid", tokenizer=tokenizer)
    assert not (tmp_path / "grid").exists()


def test_where_the_tokenizer_lies_changes_nothing(tokenizer: Tokenizer) -> None:
    one = NeedleConfig.from_mapping({**SMALL, "tokenizer_path": "here"})
    assert one.content_hash() == replace(one, tokenizer_path="there").content_hash()
    assert one.content_hash() != replace(one, random_seed=1).content_hash()


def test_command_line_reports_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["--target-length", "500", "--length-interval", "600", "--num-positions", "2", "--num-samples", "1"]
    assert main(["needle", "build", "--save-dir", str(tmp_path / "g"), *grid]) == 2
    assert "length interval 600 is larger" in capsys.readouterr().err


HELD = """
import sys, time
from pathlib import Path

from lm_audit.audits.needle.grid.writing import _Work
from lm_audit.cli import main

FOLDER, CELL = Path(sys.argv[1]), _Work.cell


def cell(work, root, length, depth):  # Workers are forked, and have it too.
    until = time.monotonic() + 120
    while len(list(FOLDER.glob("length_*/*.jsonl"))) > 3 and time.monotonic() < until:
        time.sleep(0.01)
    return CELL(work, root, length, depth)


_Work.cell = cell
sys.exit(main(sys.argv[2:]))
"""
"""Some cells are written, and no further one before somebody kills the process."""


def test_killed_build_goes_on_without_duplicates_or_torn_lines(tmp_path: Path) -> None:
    """A real ``needle build`` with two workers, killed in the middle, then run again."""
    folder = save_small_llama(tmp_path / "model")
    small_tokenizer("byte-level").save_pretrained(folder)
    (tmp_path / "essay.txt").write_text(embedded_essay().text[:40_000], encoding="utf-8")
    words = ["needle", "build", "--tokenizer", str(folder), "--haystack", str(tmp_path / "essay.txt")]
    words += ["--target-length", "4000", "--length-interval", "1000", "--num-positions", "5", "--num-samples", "2"]
    every = [*words, "--workers", "2"]
    root = Path(__file__).resolve().parents[3]
    environment = os.environ | {"PYTHONPATH": str(root / "harness"), "OMP_NUM_THREADS": "1"}

    def start(folder: Path, *program: str) -> Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *program, *every, "--save-dir", str(folder)],
            env=environment, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    first = start(tmp_path / "killed", "-c", HELD, str(tmp_path / "killed"))
    wait_for(lambda: list((tmp_path / "killed").glob("length_*/*.jsonl")), first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    wait_for(lambda: not processes_of(first.pid))
    finished = len(list((tmp_path / "killed").glob("length_*/*.jsonl")))
    assert 0 < finished < 20
    assert main([*every, "--save-dir", str(tmp_path / "killed")]) == 0
    assert main([*words, "--save-dir", str(tmp_path / "whole"), "--workers", "1"]) == 0
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
    assert len({sample.id for sample in read_folder(tmp_path / "killed")}) == 4 * 5 * 2


def wait_for(condition: Callable[[], object], process: Popen[bytes] | None = None, seconds: int = 120) -> None:
    """Wait until the condition holds; fail if the process ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        assert process is None or process.poll() is None, "ended too early"
        time.sleep(0.002)


def processes_of(session: int) -> list[int]:
    """Living processes of a session, as /proc shows them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
