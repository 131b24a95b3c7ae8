"""Every metric says of which rows it was made, and those rows give it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.privacy import measured_cases as evalcases
from lm_audit.audits.privacy.controls.known_scores import known_scores
from lm_audit.audits.privacy.evidence.metric_sources import stage_source
from lm_audit.audits.privacy.files.evidence_file import load_evidence, save_evidence
from lm_audit.audits.privacy.stages.seeds import combine_seeds
from lm_audit.audits.privacy.stages.stage_names import STAGES, TRANSITIONS
from lm_audit.audits.privacy.statistics import epsilon_of_scores
from lm_audit.evidence import Evidence
from lm_audit.sources import recompute, unreproduced, unsourced
from lm_audit.stats import Estimate
from tests.present import present

NEUTRAL = ("power.", "stability", "source.stability", ".p")


def test_rows_give_every_metric_of_the_audit(smoke_evidence: Evidence) -> None:
    assert unreproduced(smoke_evidence) == []
    assert [name for name in unsourced(smoke_evidence) if ".power." not in name] == []


@pytest.mark.parametrize("family", evalcases.METRIC_FAMILIES)
def test_every_case_holds_the_rows_of_its_metrics(smoke_evidence: Evidence, family: str) -> None:
    for stage in STAGES:
        part = evalcases.stage_slice(smoke_evidence, stage, family)
        assert part.metrics
        assert unreproduced(part) == []
        assert unsourced(part) == []
        assert len({row["item"] for row in part.rows}) == len(part.rows)
        silent = [note for note in part.notes if "privacy.epsilon can reach no verdict here" in note]
        assert len(silent) == (family == "epsilon" and part.metrics["privacy.epsilon"].value is None)


def test_families_of_one_case_hold_each_row_once(smoke_evidence: Evidence) -> None:
    """An item stands in a case once; the metrics of all are made of what the case holds."""
    parts = evalcases.stage_slices(smoke_evidence, "sft", ("membership", "exposure", "extraction"))
    rows = [row for part in parts for row in part.rows]
    assert len({row["item"] for row in rows}) == len(rows) > 0
    assert all(part.metrics for part in parts) and not parts[2].rows
    whole = Evidence("privacy", rows=rows)
    for part in parts:
        for name, estimate in part.metrics.items():
            whole.metric(name, estimate, part.sources.get(name))
    assert unreproduced(whole) == [] and unsourced(whole) == []


def test_transitions_and_baseline_hold_theirs(smoke_evidence: Evidence) -> None:
    for transition in TRANSITIONS:
        part = evalcases.transition_slice(smoke_evidence, transition)
        assert unreproduced(part) == []
        assert part.sources["privacy.did"].unit == ("canary_id",)
        assert part.figures[-1].data["rows"][0]["metric"] == "secret_logprob_did"
    assert unreproduced(evalcases.blind_slice(smoke_evidence)) == []


def test_controls_and_seeds_hold_theirs() -> None:
    assert unreproduced(known_scores(0)) == []
    assert unsourced(known_scores(0)) == []
    seeds = {s: Evidence("privacy", metrics={"m": Estimate(v, v - 1, v + 1)}) for s, v in enumerate((0.5, 0.7, -0.1))}
    combined = combine_seeds(seeds, "m")
    assert unreproduced(combined) == []
    assert unsourced(combined) == []


def test_what_can_get_worse_has_a_direction(smoke_evidence: Evidence) -> None:
    for name, metric in smoke_evidence.metrics.items():
        if metric.value is not None and not any(part in name for part in NEUTRAL):
            assert metric.better is not None, name


def test_sources_survive_the_disk(smoke_evidence: Evidence, tmp_path: Path) -> None:
    save_evidence(smoke_evidence, tmp_path / "e.json")
    assert load_evidence(tmp_path / "e.json").sources == smoke_evidence.sources


def test_epsilon_of_coins_follows_from_the_rows() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(80) < 0.5
    values = np.where(included, 2.0, 0.0) + rng.normal(size=80)
    rows = [
        {"item": str(i), "stage": "sft", "role": "member" if inside else "control", "span_mean_logprob": float(v)}
        for i, (inside, v) in enumerate(zip(included, values, strict=True))
    ]
    assert (
        recompute(present(stage_source("sft", "epsilon")), rows)
        == present(epsilon_of_scores(values, included).value)
        > 0
    )


@pytest.mark.parametrize("spreads", [(0.1, 0.4), (0.2, 3.0), (0.5, 1.5)])
def test_a_stability_that_cannot_fall_further_follows_from_the_rows(spreads: tuple[float, float]) -> None:
    """Two canaries of which one moves by more than its own mean: the metric ends at 0, and so do its rows."""
    from lm_audit.audits.privacy.measure.stress import stability

    names = (("stability", "prompt_instability"), ("source.stability", "source_prompt_instability"))
    for name, column in names:
        rows = [
            {"item": str(i), "stage": "sft", "role": "member", "canary_id": str(i), column: spread}
            for i, spread in enumerate(spreads)
        ]
        wanted = stability([[-1 - spread, -1 + spread] for spread in spreads])
        assert recompute(present(stage_source("sft", name)), rows) == pytest.approx(present(wanted), abs=1e-12)
