"""A smoke run of all audits: every metric is declared, says which way it gets worse, and follows from its rows."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from lm_audit.audits.metric_info import metric_info
from lm_audit.cli import main
from lm_audit.evidence import Evidence
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.runstore import CaseRecord, Run, read_rows, read_run
from lm_audit.sources import undirected, unreproduced, unsourced
from tests.shared_data import SHARED

ROOT = Path(__file__).resolve().parents[2]
DESIGN = ("privacy.power.",)
"""What follows from the number of canaries alone has no rows."""

SETS = {
    "crows_pairs": "crows_pairs_anonymized.csv",
    "stereoset": "stereoset_editbias",
    "winobias": "winobias",
    "winogender": "winogender/all_sentences.tsv",
}

DATA = [f"--data={name}={SHARED / 'data' / 'bias' / path}" for name, path in SETS.items() if SHARED.exists()]
NEEDLE = ["--needle-lengths", "420,500", "--needle-depths", "3"]  # what fits into tiny's window


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Run:
    reports = tmp_path_factory.mktemp("reports")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "evals",
        "--size",
        "smoke",
        "--model",
        "tiny",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--reports", str(reports), *NEEDLE, *DATA]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    (ledger,) = reports.glob("*/ledger")
    return read_run(ledger.parent)


def evidence_of(run: Run, case: CaseRecord) -> Evidence:
    last = case.last
    return Evidence(
        case.audit or "",
        metrics=dict(last.metrics),
        rows=list(read_rows(run.folder, last.row_files)),
        sources=dict(last.sources),
        headline=last.headline,
    )


@pytest.mark.slow
def test_every_metric_is_declared_in_its_audits_table(smoke: Run) -> None:
    names = {name for case in smoke.cases for name in case.last.metrics}
    assert {name.partition(".")[0] for name in names} == {"bias", "faithfulness", "leakage", "needle", "privacy"}
    assert [name for name in sorted(names) if metric_info(name) is None] == []


@pytest.mark.slow
def test_every_metric_has_a_direction_and_a_source(smoke: Run) -> None:
    problems = []
    audits = set()
    for case in (case for case in smoke.cases if not case.is_control):
        found = evidence_of(smoke, case)
        audits |= {case.audit} if found.metrics else set()
        nameless = [name for name in unsourced(found) if not name.startswith(DESIGN)]
        lines = [*unreproduced(found), *(f"{name}: no source" for name in nameless)]
        lines += [f"{name}: no direction, nor 'neither'" for name in undirected(found)]
        if found.headline is not None and found.headline not in found.sources:
            lines.append(f"{found.headline}: a headline without a source")
        problems += [f"{case.case_id}: {line}" for line in lines]
    assert problems == []
    assert audits == {"bias", "faithfulness", "leakage", "needle", "privacy"}


@pytest.mark.slow
def test_every_headline_is_paired_with_itself(smoke: Run) -> None:
    compared = compare_runs(smoke, smoke)
    decided = [change for change in compared.changes if change.decided and change.a.value is not None]
    assert decided and not compared.failed
    assert [change.metric for change in decided if change.basis != "paired" or not change.identical] == []


SAID_BY_NAME = ("::test_preference_grid[", "::test_refusal[")
"""Cases whose items bear their whole text as names."""


@pytest.mark.slow
def test_every_row_says_what_its_item_is(smoke: Run) -> None:
    """Else other data under the same names would be taken for the same items."""
    lacking = {}
    for case in (case for case in smoke.cases if not case.is_control):
        rows = [row["item"] for row in read_rows(smoke.folder, case.last.row_files) if row.get("content") is None]
        if rows and not any(name in case.case_id for name in SAID_BY_NAME):
            lacking[case.case_id] = rows[:3]
    assert lacking == {}


@pytest.mark.slow
def test_every_value_lies_in_the_range_of_its_metric(smoke: Run) -> None:
    beyond = []
    for case in smoke.cases:
        for name, estimate in case.last.metrics.items():
            info = metric_info(name)
            if info is not None and estimate.value is not None:
                low, high = info.limits
                beyond += [] if low - 1e-9 <= estimate.value <= high + 1e-9 else [f"{name}: {estimate.value}"]
    assert beyond == []


@pytest.mark.slow
def test_the_plan_knows_every_headline_and_what_will_stand_behind_it(
    smoke: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["plan", "--json", "--size", "smoke", "--model", "tiny", *NEEDLE, *DATA]) == 0
    planned = json.loads(capsys.readouterr().out)
    unplanned, otherwise = [], []
    for case in (case for case in smoke.cases if not case.is_control and case.last.headline):
        metric = str(case.last.headline)
        named = (one for one in planned if one["case_id"] == case.case_id and fnmatchcase(metric, one["metric"]))
        entry, behind = next(named, None), case.last.metrics[metric].units
        if entry is None:
            unplanned.append(f"{case.case_id}: {metric}")
        elif None not in (entry["units"], behind) and entry["no_verdict"] is None and entry["units"] != behind:
            otherwise.append(f"{case.case_id}: {metric}: {entry['units']} planned, {behind} measured")
    assert (unplanned, otherwise) == ([], [])
