"""Two models in one run are compared as two runs are; models and devices are matched by name, or one is asked which."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lm_audit.errors import UsageError
from lm_audit.evidence import Control, Evidence
from lm_audit.findings import claim
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.report.comparison.models_compared import compared_models
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.report.tables.summary import run_summary
from lm_audit.runstore import read_run
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.records import Run
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, bootstrap_ci
from tests.report.made_runs import MadeCase, write_run

N = 40


def measured(shift: float) -> Evidence:
    """A score over items that is ``shift`` on average, and what is concluded from it."""
    values = np.random.default_rng(1).normal(shift, 0.2, N)
    evidence = Evidence("bias", headline="bias.gap")
    estimate = replace(bootstrap_ci(values, seed=0, n_resamples=500), unit="nats", better="lower", chance=0.0)
    evidence.metric("bias.gap", estimate, MetricSource.mean("score"))
    evidence.extend_rows({"item": f"i{k}", "score": float(v)} for k, v in enumerate(values))
    texts = {"found": "It leans", "absent": "It does not lean", "unknown": "Does it lean?"}
    evidence.finding(claim("gap", evidence.metrics["bias.gap"], metric="bias.gap", margin=0.2, **texts))  # type: ignore[arg-type]
    return evidence


def made(folder: Path, models: Iterable[tuple[str, str, float]], *, control: bool = True) -> Run:
    """A run with one case a model and device, and a control that chose its model itself."""
    run = RunFolder(folder)
    run.create()
    run.run_json.write_text(json.dumps({"seed": 0, "size": "smoke"}))
    ledger = Ledger(run.ledger, "main")
    cases = [(f"evals/test_bias.py::test_x[{m}@{d}-a]", m, d, shift) for m, d, shift in models]
    plan: list[dict[str, object]] = [
        {"case_id": case, "audit": "bias", "model": m, "device": d} for case, m, d, _ in cases
    ]
    held = "evals/test_bias.py::test_control[tiny@cpu-planted]"
    if control:
        plan.append({"case_id": held, "audit": "bias", "model": "tiny", "control_role": "positive", "pinned": True})
    ledger.write("run_start", run_id=run.run_id)
    ledger.write("plan", cases=plan)
    for case, model, device, shift in cases:
        writer = AttemptWriter(run, ledger, case, 1)
        writer.start(audit="bias", model=model, device=device)
        Recorder(writer).record(measured(shift))
        writer.end("passed", 1.0)
    if control:
        writer = AttemptWriter(run, ledger, held, 1)
        writer.start(audit="bias", model="tiny", device="cpu", control="positive")
        Recorder(writer).record(Evidence("bias", control=Control("positive", True, "a gap", "a gap")))
        writer.end("passed", 1.0)
    ledger.write("run_end")
    ledger.close()
    return read_run(folder)


def test_two_models_of_a_run_are_compared_in_its_summary(tmp_path: Path) -> None:
    run = made(tmp_path / "r", [("base", "cpu", 0.0), ("mine", "cpu", 0.5)])
    (comparison,) = compared_models(run)
    assert (comparison.a, comparison.b) == ("base", "mine") and not comparison.lost
    (change,) = comparison.changes
    assert change.direction == "worse" and change.basis == "paired" and change.pairs == N
    (finding,) = comparison.findings
    assert (finding.a.verdict, finding.b.verdict, finding.direction) == ("not found", "found", "worse")
    (told,) = run_summary(run, build_page(run))["comparisons"]
    assert told["changes"][0]["direction"] == "worse" and told["findings"][0]["moved"]
    json.dumps(told, allow_nan=False)
    assert any("It leans (not found \u2192 found" in line for line in comparison_lines(comparison))
    assert "It leans" in render_comparison(comparison)


def test_the_page_shows_the_models_beside_each_other_with_what_changed_first(tmp_path: Path) -> None:
    models = [("base", "cpu", 0.0), ("mine", "cpu", 0.5), ("same", "cpu", 0.0)]
    page = build_page(made(tmp_path, models))
    mine, same = page.compared
    assert (mine.comparison.a, mine.comparison.b, same.comparison.b) == ("base", "mine", "same")
    (row,) = mine.telling
    assert row["word"] == "worse" and row["case"] == "x \u203a a" and mine.rest == () and same.telling == ()
    assert [(change.a.verdict, change.b.verdict) for change in mine.moved] == [("not found", "found")]
    html = render_page(page)
    assert html.count('<section class="beside"') == 2
    for text in ("mine beside base", "same beside base", "not found \u2192 <b>found</b>: It leans", "\u2193 worse"):
        assert text in html, text
    assert f'href="#{row["anchor"]}"' in html and f'id="{row["anchor"]}"' in html
    alone = build_page(made(tmp_path / "alone", models[:1]))
    assert alone.compared == () and '<section class="beside"' not in render_page(alone)


def test_one_model_is_compared_with_nothing(tmp_path: Path) -> None:
    assert compared_models(made(tmp_path / "r", [("base", "cpu", 0.0)])) == []


def test_models_that_differ_in_nothing_are_the_same(tmp_path: Path) -> None:
    (comparison,) = compared_models(made(tmp_path / "r", [("base", "cpu", 0.5), ("mine", "cpu", 0.5)]))
    assert [change.direction for change in comparison.changes] == ["same"] and not comparison.failed
    assert not comparison.findings[0].moved


def test_every_device_is_compared_with_its_own(tmp_path: Path) -> None:
    models = [(m, d, 0.5 if (m, d) == ("mine", "cuda:0") else 0.0) for m in ("base", "mine") for d in ("cpu", "cuda:0")]
    (comparison,) = compared_models(made(tmp_path / "r", models))
    words = {change.case_id_b.partition("@")[2].partition("-")[0]: change.direction for change in comparison.changes}
    assert words == {"cpu": "same", "cuda:0": "worse"}


def test_two_models_are_paired_by_name_across_runs_and_else_asked_for(tmp_path: Path) -> None:
    two = made(tmp_path / "two", [("base", "cpu", 0.0), ("mine", "cpu", 0.5)])
    again = made(tmp_path / "again", [("mine", "cpu", 0.5), ("base", "cpu", 0.0)])
    assert {change.direction for change in compare_runs(two, again, across_models=True).changes} == {"same"}
    with pytest.raises(UsageError, match=r"which models .* run holds old, the second base, mine; .*--model NAME=SPEC"):
        compare_runs(made(tmp_path / "old", [("old", "cpu", 0.0)]), two, across_models=True)
    with pytest.raises(
        UsageError, match=r"which device .* run dev holds .*; compare without --across-models, or run one"
    ):
        one = made(tmp_path / "one", [("mine", "mps", 0.0)])
        compare_runs(one, made(tmp_path / "dev", [("mine", "cpu", 0.0), ("mine", "cuda:0", 0.0)]), across_models=True)


def test_a_parameter_that_reads_like_the_place_of_a_model_stays_in_the_name(tmp_path: Path) -> None:
    name = "evals/t_x.py::t[{}@{}-x[base@cpu]"
    sides = []
    for model, device in (("base", "cpu"), ("mine", "cuda:0")):
        case = MadeCase(name.format(model, device), "x", model, device, metrics={"x.m": Estimate(0.4, 0.3, 0.5, 50)})
        sides.append(read_run(write_run(tmp_path / model, [case])))
    found = compare_runs(*sides, across_models=True)
    assert not found.vanished and [change.case_id_b for change in found.changes] == [name.format("mine", "cuda:0")]
