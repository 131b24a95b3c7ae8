"""Every metric that the audits declare is simulated, by its own design or one of the same rows and function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.metric_info import declared_names

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
AUDITS = ("bias", "faithfulness", "leakage", "needle", "privacy")


@pytest.fixture(scope="module")
def folder() -> Iterator[None]:
    """The scripts find each other by bare names."""
    before = list(sys.path)
    sys.path[:0] = [str(FOLDER), str(FOLDER / "metrics")]
    yield
    sys.path[:] = before


@pytest.fixture(scope="module")
def simulated(folder: None) -> set[str]:
    """The names of all designs; of designs with the same rows one is drawn."""
    names, found = importlib.import_module("names"), set[str]()
    for audit in AUDITS:
        designs: dict[Any, Any] = {}
        for design in importlib.import_module(f"{audit}_figures").designs():
            designs[design.trial.func, design.trial.keywords.get("kind"), design.trial.keywords.get("n", 0) < 15] = (
                design
            )
        for design in designs.values():
            for label, told in design.trial(np.random.default_rng(1), 1, False).items():
                assert told.estimate.value is not None or told.holds is None
                found |= names.named(label)
    return found


@pytest.mark.parametrize("audit", AUDITS)
def test_every_declared_metric_is_simulated(audit: str, simulated: set[str]) -> None:
    names = importlib.import_module("names")
    assert declared_names(audit)
    assert [name for name in declared_names(audit) if names.stands_for(name, simulated) is None] == []


def test_a_metric_that_nothing_stands_for_is_seen(simulated: set[str]) -> None:
    names = importlib.import_module("names")
    assert names.stands_for("needle.speed", simulated) is None
    assert names.stands_for("privacy.{stage}.roc_auc.{score}", simulated) == "privacy.roc_auc.{score}"
    assert names.stands_for("bias.bbq_generated_bias_ambig.category.{category}", simulated) == "bias.bbq_bias_ambig"


def test_what_a_design_tells_is_counted_rightly(folder: None) -> None:
    figure, estimate = importlib.import_module("figure"), importlib.import_module("lm_audit.stats").Estimate
    inside = figure.Told(estimate(0.5, 0.1, 0.9), 0.0, 0.0, "above")
    assert inside.holds is False and inside.invents is True
    assert figure.Told(estimate(-0.5, -0.9, -0.1), 0.0, 0.0, "above").invents is False
    assert figure.Told(estimate(0.5, 0.1, 0.9), 0.5, 0.0).invents is None
    assert figure.Told(estimate(0.5), 0.5, 0.5).holds is None
