"""Controls: what is planted is there, randomised weights are new, and the verdicts follow from the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lm_audit.audits.faithfulness import controls
from lm_audit.audits.faithfulness.controls import (
    COPIED,
    METHODS,
    copy_task,
    planted_recall,
    random_attribution_evidence,
    randomised,
)
from lm_audit.audits.faithfulness.study import prepare
from lm_audit.models.byte_tokenizer import byte_tokenizer
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.tiny import tiny_model
from tests.audits.faithfulness.small_decoders import small_decoder


@pytest.fixture(scope="module")
def small():
    return LanguageModel(small_decoder("llama_tied", vocab_size=259), byte_tokenizer(128), name="small")


def test_the_answer_of_a_copy_sample_is_its_evidence():
    task = copy_task(5, 20, seed=3)
    assert len(task.texts) == 5 and len(task.samples) == 20
    for sample in task.samples:
        ((first, last),) = sample.evidence
        assert sample.prompt[first:last] == sample.generation and last - first == COPIED
    assert copy_task(5, 20, seed=3) == task != copy_task(5, 20, seed=4)


def test_randomisation_cascades_from_the_top_and_leaves_the_model_alone(small):
    before = {name: value.clone() for name, value in small.module.state_dict().items()}
    for layers in range(1, 5):
        other = randomised(small, layers, seed=0).module.state_dict()
        changed = {name for name, value in other.items() if not torch.equal(value, before[name])}
        untouched = {f"layers.{index}." for index in range(0, max(0, 3 - layers))}
        assert not [name for name in changed if any(part in name for part in untouched)]
        assert any(f"layers.{max(0, 3 - layers)}." in name for name in changed)
        assert ("model.embed_tokens.weight" in changed) == (layers == 4)
    assert all(torch.equal(value, before[name]) for name, value in small.module.state_dict().items())


def test_random_attributions_overlap_with_random_orders(small):
    studies = [prepare(small, sample) for sample in copy_task(0, 12, 0).samples]
    evidence = random_attribution_evidence(studies, steps=6, seed=0)
    assert evidence.control.passed and evidence.control.role == "negative"
    assert {"faithfulness.random_mas", "faithfulness.chance_mas"} <= set(evidence.metrics)


def test_an_attribution_that_cheats_is_caught(small, monkeypatch):
    """Intervals that do not overlap fail the control."""
    studies = [prepare(small, sample) for sample in copy_task(0, 12, 0).samples]

    def apart(values, **_):
        from lm_audit.stats import Estimate

        mean = float(np.mean(values))
        apart.calls += 1
        return Estimate(mean, mean - 1e-9, mean + 1e-9, n=len(values))

    apart.calls = 0
    monkeypatch.setattr("lm_audit.stats.bootstrap_ci", apart)
    assert not random_attribution_evidence(studies, steps=6, seed=0).control.passed
    assert apart.calls == 4


def test_an_untrained_model_fails_the_positive_control(small, monkeypatch):
    monkeypatch.setattr(controls, "trained_copier", lambda base, **_: (copy_task(0, 6, 0), small))
    evidence = controls.planted_span_evidence(small, seed=0)
    assert not evidence.control.passed and "accuracy 0.00" in evidence.control.observed


@pytest.mark.slow
def test_a_model_that_copies_shows_where_from_and_loses_it_with_its_weights():
    base = tiny_model()
    positive = controls.planted_span_evidence(base, seed=1)
    assert positive.control.passed, positive.control.observed
    negative = controls.randomised_weights_evidence(base, seed=1)
    assert negative.control.passed, negative.control.observed
    task, model = controls.trained_copier(base, seed=1, train=1500, held_out=20)
    study = prepare(model, task.samples[0])
    assert all(0.0 <= planted_recall(study, method) <= 1.0 for method in METHODS)
