"""The audit's cases as pytest runs them: ids, skips, folders, adaptive runs, sharing of prefixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.audits.needle import write_grid
from tests.plugin.toy_run import Outcome, run_pytest

ROOT = Path(__file__).resolve().parents[3]


EVALS = ("evals/test_needle.py", "-q", "-p", "no:cacheprovider")


def run_evals(reports: Path, *arguments: str) -> str:
    """``pytest evals/test_needle.py`` in a process of its own; its output."""
    return run_pytest(ROOT, *EVALS, "-rs", "--reports", str(reports), *arguments, plugins=()).output


def collected(*arguments: str) -> tuple[Outcome, list[str]]:
    """The same that collects only, and the ids that it lists."""
    done = run_pytest(ROOT, *EVALS, "--collect-only", *arguments, plugins=())
    return done, [line for line in done.output.splitlines() if "::" in line]


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
    assert done.code != 0
    assert message in done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_folder_is_evaluated_and_lengths_beyond_the_context_skip_with_both_numbers(
    folder: Path, tmp_path: Path
) -> None:
    output = run_evals(tmp_path, "--model", "tiny", "--needle-folder", str(folder))
    assert "the case with its answer needs 1000 tokens" in output
    assert "failed" not in output
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
    output = run_evals(tmp_path / "shared", *options, "-k", "cell or grid")
    assert "5 passed" in output, output
    output = run_evals(tmp_path / "adaptive", *options, "--adaptive", "-k", "cell or grid")
    assert "1 passed" in output, output
    evidence = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "adaptive").glob("2*/evidence.jsonl"))
    assert "needle.samples_spent" in evidence
