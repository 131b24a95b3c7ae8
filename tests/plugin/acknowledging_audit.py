"""A small audit whose every record is acknowledged in a second file once its write has returned."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lm_audit.runstore.records import Run
from lm_audit.runstore.run import read_run

SOURCE = """
import json, os, time
from pathlib import Path

import numpy as np
import pytest

from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

ACKNOWLEDGED = os.open(Path(__file__).with_name("acknowledged.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
READ = os.open(Path(__file__).with_name("acknowledged.jsonl"), os.O_RDONLY)
PAUSE = float(os.environ.get("TOY_PAUSE", "0.01"))


def acknowledge(**entry):
    os.write(ACKNOWLEDGED, json.dumps(entry | {"pid": os.getpid()}).encode() + b"\\n")


def hold(index):  # Somebody is going to end this run: its last cases wait until that is done, whoever is faster.
    released = os.environ.get("TOY_RELEASE")
    until = time.monotonic() + 120
    while index >= __CASES__ - 4 and released and not os.path.exists(released) and time.monotonic() < until:
        time.sleep(0.01)


def stay():  # Whoever has acknowledged the last of so many records is in its case when somebody looks.
    enough = int(os.environ.get("TOY_STAY", "0"))
    released, until = os.environ.get("TOY_RELEASE", ""), time.monotonic() + 120
    if enough and os.pread(READ, 1 << 20, 0).count(b"\\n") >= enough:
        while not os.path.exists(released) and time.monotonic() < until:
            time.sleep(0.01)


def take_down(evidence, case_id, values):
    for index, value in enumerate(values):
        estimate = Estimate(value=float(value), low=None, high=None, n=7, confidence=0.95, method="toy", unit="")
        evidence.metric(f"toy.value{index}", estimate)
        acknowledge(case=case_id, metric=f"toy.value{index}", value=float(value))
        stay()
        time.sleep(PAUSE)
    evidence.rows({"item": f"i{index}", "value": float(value)} for index, value in enumerate(values))
    acknowledge(case=case_id, rows=len(values))


@cases([Case(f"c{index:02}", {"index": index}) for index in range(__CASES__)])
def test_free(case, evidence, audit_seed, request):
    hold(case.params["index"])
    rng = np.random.default_rng([audit_seed, case.params["index"]])
    take_down(evidence, request.node.nodeid, rng.normal(size=4))
"""

MODEL_SOURCE = """

@cases([Case(f"m{index}", {"index": index}) for index in range(__CASES__)])
def test_scored(case, language_model, evidence, request):
    texts = [(f"Case {case.params['index']}:", f" {word} and more") for word in ("one", "two", "three")]
    take_down(evidence, request.node.nodeid, [sum(scores.logprobs) for scores in language_model.loglikelihood(texts)])
"""


def audit_source(cases: int, *, model_cases: int = 0) -> str:
    """The test module, with so many cases without and with a model."""
    source = SOURCE.replace("__CASES__", str(cases))
    return source + (MODEL_SOURCE.replace("__CASES__", str(model_cases)) if model_cases else "")


def acknowledged(project: Path) -> list[dict[str, Any]]:
    """What the audit knew to be written, in order."""
    file = project / "acknowledged.jsonl"
    # A line that is being written, or whose writer was killed in it, acknowledges nothing.
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def only_run(project: Path) -> Run:
    """The one run of the project."""
    (ledger,) = (project / "reports").glob("*/ledger")
    return read_run(ledger.parent)


Measured = dict[str, tuple[str | None, dict[str, dict[str, object]], list[str]]]
"""By case: its outcome, its estimates and its item rows."""


def evidence_of(run: Run) -> Measured:
    """What a run measured, by case: everything but times, workers and attempts."""
    return {
        case.case_id: (
            case.outcome,
            {name: asdict(estimate) for name, estimate in case.last.metrics.items()},
            rows_of(run, case.last.row_files),
        )
        for case in run.cases
    }


def rows_of(run: Run, files: tuple[str, ...]) -> list[str]:
    """The item rows of an attempt, as they lie on the disk."""
    return [line for name in files for line in (run.folder / name).read_text(encoding="utf-8").splitlines()]


def check_nothing_lost(run: Run, entries: list[dict[str, Any]]) -> None:
    """Every acknowledged record is in the run, be it in an earlier attempt."""
    metrics: set[tuple[str, str, float | None]] = set()
    rows: dict[str, int] = {}
    for case in run.cases:
        for attempt in (*case.earlier, case.last):
            metrics |= {(case.case_id, name, estimate.value) for name, estimate in attempt.metrics.items()}
            rows[case.case_id] = max(rows.get(case.case_id, 0), len(rows_of(run, attempt.row_files)))
    for entry in entries:
        if "metric" in entry:
            assert (entry["case"], entry["metric"], entry["value"]) in metrics, entry
        else:
            assert rows.get(entry["case"], 0) >= entry["rows"], entry
