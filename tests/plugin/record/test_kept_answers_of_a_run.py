"""A case that is killed in the middle of a long call: --resume asks the model only what it had not answered."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.plugin.toy_audit import last_run
from tests.plugin.toy_run import run_pytest, write_project

SOURCE = """
import os, signal
from pathlib import Path

import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats import Estimate

PASSES = Path(__file__).with_name("passes.txt")
REQUESTS = [(f"The {n} bakers of the old town said that", " they were late") for n in range(40)]

@pytest.mark.bias
@cases(lambda options: [Case("all")])
def test_long(case, language_model, evidence):
    def count(module, given, found):
        with PASSES.open("a") as file:
            file.write("x")
        if os.environ.get("TOY_KILL") and PASSES.stat().st_size > 8:
            os.kill(os.getpid(), signal.SIGKILL)

    language_model.loglikelihood(REQUESTS[:1])
    language_model.batch_tokens = 64
    hook = language_model.module.get_input_embeddings().register_forward_hook(count)
    scores = language_model.loglikelihood(REQUESTS)
    hook.remove()
    evidence.metric("bias.gap", Estimate(scores[-1].total, n=40))
"""


def project(folder: Path) -> Path:
    folder.mkdir()
    return write_project(folder, test_long=SOURCE)


def passes(folder: Path) -> int:
    return (folder / "passes.txt").stat().st_size


def gap(folder: Path) -> float:
    value = last_run(folder).cases[0].last.metrics["bias.gap"].value
    assert value is not None
    return value


def test_a_killed_case_is_not_measured_again(tmp_path: Path) -> None:
    words = ("--model", "tiny", "--device", "cpu", "-n", "0", "--report-only")
    whole, folder = project(tmp_path / "whole"), project(tmp_path / "killed")
    done = run_pytest(whole, *words)
    assert done.code == 0, done.output
    assert not list(last_run(whole).folder.glob("measuring*"))

    assert run_pytest(folder, *words, TOY_KILL="1").code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    before, run = passes(folder), last_run(folder)
    assert list(run.folder.glob("measuring/case-*.jsonl"))
    resumed = run_pytest(folder, *words, "--resume", run.run_id)
    assert resumed.code == 0, resumed.output
    # One pass was under way when the process was killed.
    assert 0 < passes(folder) - before <= passes(whole) - before + 2
    assert not list(run.folder.glob("measuring*"))
    assert abs(gap(folder) - gap(whole)) < 1e-4
