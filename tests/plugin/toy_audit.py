"""A toy audit in a project of its own, and how its run is read back."""

from __future__ import annotations

import os
from pathlib import Path

from lm_audit.runstore import Run, read_run
from tests.plugin.toy_run import Outcome, run_pytest, write_project

AUDIT = """
import os, signal, time
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

CASES = [Case("a", {"value": 0.2}), Case("b", {"value": 0.5}), Case("c", {"value": 0.8})]


@pytest.mark.bias
@cases(CASES)
def test_gap(case, evidence, audit_seed):
    value = case.params["value"]
    if os.environ.get("STOP") == case.id:
        try:
            os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))
            time.sleep(5)
        except Exception as error:  # What a training loop does, and what no signal may be caught by.
            raise ValueError("swallowed") from error
    evidence.parameter("seed", audit_seed)
    evidence.metric("bias.gap", Estimate(value, value - 0.1, value + 0.1, n=100, method="toy"))
    evidence.rows({"item": str(i), "score": value * i} for i in range(5))
    evidence.headline("bias.gap")
"""

ONLY_A = "test_toy.py::test_gap[a]"

MODEL_AUDIT = """
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate


@pytest.mark.bias
@cases([Case("short", {"text": "the cat"}), Case("long", {"text": "the cat sat on the mat"})])
def test_score(case, language_model, evidence, device):
    scores = language_model.loglikelihood([("", case.params["text"])])
    evidence.metric("bias.loglik", Estimate(sum(scores[0].logprobs), n=len(scores[0].token_ids)))
    assert str(language_model.device) == device == "cpu"


@pytest.mark.bias
def test_bare(language_model, evidence):
    evidence.metric("bias.parameters", Estimate(float(sum(p.numel() for p in language_model.module.parameters()))))
"""


def audit_project(folder: Path, source: str = AUDIT, name: str = "test_toy") -> Path:
    """A project that holds the toy audit."""
    return write_project(folder, **{name: source})


def runs(folder: Path) -> list[Path]:
    """The run folders of a project, oldest first."""
    return sorted((path.parent for path in (folder / "reports").glob("*/ledger")), key=os.path.getmtime)


def last_run(folder: Path) -> Run:
    """The latest run of a project, read from disk."""
    return read_run(runs(folder)[-1])


def outcomes(run: Run) -> dict[str, str]:
    """The outcome of every case by what stands between its brackets."""
    return {case.case_id.partition("[")[2].rstrip("]") or case.case_id: case.outcome for case in run.cases}


def measured(run: Run) -> dict[str, object]:
    """What a run measured, without what differs from run to run: times, workers, file names."""
    return {
        case.case_id: (
            case.outcome, dict(case.last.metrics), case.last.parameters, case.last.n_rows, case.verdicts,
        )
        for case in sorted(run.cases, key=lambda case: case.case_id)
    }  # fmt: skip


__all__ = [
    "AUDIT",
    "MODEL_AUDIT",
    "ONLY_A",
    "Outcome",
    "audit_project",
    "last_run",
    "measured",
    "outcomes",
    "run_pytest",
    "runs",
]
