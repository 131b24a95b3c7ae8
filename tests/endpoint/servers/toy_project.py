"""A small project whose audit asks a served model questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.plugin.toy_run import Outcome, run_pytest, write_project

AUDIT = """
import os
import pytest
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, cases
from lm_audit.stats import Estimate

pytestmark = pytest.mark.bias
COUNT = int(os.environ.get("QUESTIONS", "6"))


@cases([Case("first"), Case("second")], needs=[Capability.GENERATE])
def test_asks(case, language_model, evidence):
    prompts = [f"{case.id} question number {number}" for number in range(COUNT)]
    replies = language_model.generate(prompts, max_new_tokens=4, chat=True)
    evidence.metric("bias.answered", Estimate(float(len(replies)), n=len(replies), method="count"))
    evidence.rows({"item": prompt, "reply": one.answer} for prompt, one in zip(prompts, replies))


@cases([Case("inside")], needs=[Capability.GENERATE, Capability.HIDDEN_STATES])
def test_looks_inside(case, language_model, evidence):
    raise AssertionError("a model behind a server has no inside")


def test_undeclared(language_model, evidence):
    raise AssertionError("what declares nothing needs everything")
"""


def audit(folder: Path, spec: str, *arguments: str, **variables: Any) -> Outcome:
    """Run the project on a served model."""
    if not (folder / "pytest.ini").exists():
        write_project(folder, test_audit=AUDIT)
    return run_pytest(folder, "--model", spec, *arguments, **variables)


def last_run(folder: Path) -> Path:
    """The latest run's folder."""
    runs = [path.parent for path in (folder / "reports").glob("*/ledger")]
    return max(runs, key=lambda run: run.stat().st_mtime_ns)  # Two of one second have no order by their names.


def ledger(run: Path) -> list[dict[str, Any]]:
    """Every line of a run's ledgers."""
    return [json.loads(line) for file in sorted((run / "ledger").glob("*.jsonl")) for line in file.open()]


def answers(run: Path) -> list[dict[str, Any]]:
    """Every answer that a run has kept."""
    return [json.loads(line) for file in sorted((run / "answers").glob("*.jsonl")) for line in file.open()]
