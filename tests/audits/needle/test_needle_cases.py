"""The audit's cases as pytest runs them: ids, skips, folders, adaptive runs, sharing of prefixes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lm_audit.audits.needle import write_grid

ROOT = Path(__file__).resolve().parents[3]


def run_evals(reports, *arguments: str):
    """``pytest evals/test_needle.py`` in a process of its own; its output, and the metrics of each case."""
    command = [sys.executable, "-m", "pytest", "evals/test_needle.py", "-p", "no:xdist", "-q", "-rs"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--reports", str(reports), *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    metrics = {}
    for path in Path(reports).glob("2*/evidence.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            metrics[record.get("case", record.get("nodeid", line))] = record
    return done, metrics


def collected(*arguments: str):
    command = [sys.executable, "-m", "pytest", "evals/test_needle.py", "--collect-only", "-q", "-p", "no:xdist"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
    return done, [line for line in done.stdout.splitlines() if "::" in line]


def test_ids_name_task_length_and_depth() -> None:
    _, ids = collected("--needle-lengths", "4096,512", "--needle-depths", "3", "--needle-preset", "niah_multikey_1")
    cells = [one.split("[")[1] for one in ids if "test_cell" in one]
    assert cells[:3] == [f"smollm2@cpu-niah_multikey_1-L512-D{depth}]" for depth in (0, 50, 100)]
    assert len(cells) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--needle-lengths", "512,x"), "expected whole numbers"),
        (("--needle-preset", "niah_9"), "preset 'niah_9' is unknown"),
        (("--needle-haystack", "absent.txt"), "absent.txt: does not exist"),
        (("--needle-folder", "absent-folder"), "holds no length_*"),
    ],
)
def test_bad_options_are_named_at_collection(arguments: tuple[str, str], message: str) -> None:
    done, _ = collected(*arguments)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    """A grid for the tiny model: one length within its context, one beyond."""
    from lm_audit.models import load_tokenizer

    config = {
        "target_length": 1000,
        "length_interval": 540,
        "start_length": 460,
        "num_positions": 2,
        "num_samples": 2,
        "tokens_to_generate": 4,
        "template": "base",
    }
    path = tmp_path_factory.mktemp("needle") / "grid"
    write_grid(config, path, tokenizer=load_tokenizer("tiny"))
    return path


def test_folder_is_evaluated_and_lengths_beyond_the_context_skip_with_both_numbers(folder, tmp_path: Path) -> None:
    done, _ = run_evals(tmp_path, "--model", "tiny", "--needle-folder", str(folder))
    assert "needs 1000 tokens with its answer, beyond the trained context of 512 tokens" in done.stdout
    assert "failed" not in done.stdout
    evidence = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("2*/evidence.jsonl"))
    assert "grid-L460-D50" in evidence
    assert "needle.accuracy" in evidence
    assert "needle.value_logprob" in evidence


@pytest.mark.slow
def test_shared_windows_and_adaptive_sampling_run(tmp_path: Path) -> None:
    options: tuple[str, ...] = (
        "--model",
        "tiny",
        "--needle-lengths",
        "440,480",
        "--needle-depths",
        "2",
        "--needle-samples",
        "3",
    )
    options += ("--needle-tokens", "4", "--needle-template", "base", "--needle-windows", "shared")
    done, _ = run_evals(tmp_path / "shared", *options, "-k", "cell or grid")
    assert "5 passed" in done.stdout, done.stdout
    done, _ = run_evals(tmp_path / "adaptive", *options, "--adaptive", "-k", "cell or grid")
    assert "1 passed" in done.stdout, done.stdout
    evidence = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "adaptive").glob("2*/evidence.jsonl"))
    assert "needle.samples_spent" in evidence
