"""Controls: what is planted is there, randomised weights are new, and the verdicts follow from the numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lm_audit.audits.faithfulness.controls.copier import BACK, COPIED, WIDTH, copied, copier, copy_samples
from lm_audit.audits.faithfulness.controls.deletion_control import random_attribution_evidence
from lm_audit.audits.faithfulness.controls.known_sources import (
    METHODS,
    REPORTED,
    few,
    most,
    planted_span_evidence,
    randomised,
    randomised_weights_evidence,
)
from lm_audit.evidence import Evidence
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.sources import unreproduced, unsourced
from tests.audits.faithfulness.small_decoders import small_decoder
from tests.models.pretrained import llama
from tests.present import present


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    return LanguageModel(small_decoder("llama_tied", vocab_size=259), byte_tokenizer(128), name="small")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return copier(seed=5)


def test_the_answer_of_a_copy_sample_is_its_evidence() -> None:
    samples = copy_samples(20, seed=3)
    assert len({sample.prompt for sample in samples}) == 20
    for sample in samples:
        ((first, last),) = sample.evidence
        assert sample.prompt[first:last] == sample.generation and last - first == COPIED
    assert copy_samples(20, seed=3) == samples != copy_samples(20, seed=4)
    assert copy_samples(5, seed=3) == samples[:5]


@pytest.mark.parametrize("seed", range(3))
def test_the_copier_copies_because_one_head_looks_ten_back(seed: int) -> None:
    """Plain attention weights of transformers say so, and without that head nothing is copied."""
    model, samples = copier(seed), copy_samples(100, seed)
    assert all(copied(model, samples))
    ids = torch.tensor(
        [model.tokenizer(samples[0].prompt + present(samples[0].generation), add_special_tokens=False).input_ids]
    )
    module = llama(model.module)
    module.set_attn_implementation("eager")
    with torch.no_grad():
        head = present(module(ids, output_attentions=True).attentions)[0][0, 0]
    assert all(float(head[at, at - BACK]) > 0.9 for at in range(BACK, ids.shape[1]))
    with torch.no_grad():
        module.get_parameter("model.layers.0.self_attn.o_proj.weight")[:, :WIDTH].zero_()
    assert not any(copied(model, samples))


def test_a_seed_gives_the_same_copier_and_the_callers_random_state_stays() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    assert copier(1).fingerprint == copier(1).fingerprint != copier(2).fingerprint
    assert torch.equal(torch.rand(3), expected)


def test_randomisation_cascades_from_the_top_and_leaves_the_model_alone(small: LanguageModel) -> None:
    before = {name: value.clone() for name, value in small.module.state_dict().items()}
    for layers in range(1, 5):
        other = randomised(small, layers, seed=0).module.state_dict()
        changed = {name for name, value in other.items() if not torch.equal(value, before[name])}
        untouched = {f"layers.{index}." for index in range(0, max(0, 3 - layers))}
        assert not [name for name in changed if any(part in name for part in untouched)]
        assert any(f"layers.{max(0, 3 - layers)}." in name for name in changed)
        assert ("model.embed_tokens.weight" in changed) == (layers == 4)
    assert all(torch.equal(value, before[name]) for name, value in small.module.state_dict().items())


@pytest.mark.parametrize(
    ("control", "samples"),
    [
        pytest.param(planted_span_evidence, 12, marks=pytest.mark.slow),
        pytest.param(randomised_weights_evidence, 12, marks=pytest.mark.slow),
        (random_attribution_evidence, 16),
    ],
)
def test_all_is_well(control: Callable[..., Evidence], samples: int, model: LanguageModel) -> None:
    evidence = control(model, copy_samples(samples, seed=5), seed=5)
    assert present(evidence.control).passed, present(evidence.control).observed
    assert unreproduced(evidence) == unsourced(evidence) == []
    assert all(metric.better for metric in evidence.metrics.values())
    assert len({row["item"] for row in evidence.rows}) == len(evidence.rows)


def test_a_model_that_does_not_copy_fails_the_positive_control(small: LanguageModel) -> None:
    evidence = planted_span_evidence(small, copy_samples(12, 0), seed=0)
    assert not present(evidence.control).passed and "copied in 0 of 12" in present(evidence.control).observed


def test_every_method_is_reported_and_names_who_failed(model: LanguageModel) -> None:
    evidence = planted_span_evidence(model, copy_samples(12, 0), seed=0)
    assert {name.rpartition(".")[2] for name in evidence.metrics} == set(METHODS + REPORTED)
    assert evidence.metrics["faithfulness.planted_found.attention"].value == 1.0
    assert present(evidence.metrics["faithfulness.planted_found.input_x_gradient"].value) < 0.5


@pytest.mark.parametrize(
    ("yes", "n", "above", "below"),
    [
        (11, 11, True, False),
        (9, 9, False, False),
        (31, 40, True, False),
        (30, 40, False, False),
        (10, 40, False, False),
        (9, 40, False, True),
        (0, 9, False, False),
        (0, 11, False, True),
        (0, 0, False, False),
    ],
)
def test_a_share_is_decided_by_its_exact_limit(yes: int, n: int, above: bool, below: bool) -> None:
    """The same as a one-sided binomial test against 1/2 at 0.001."""
    from scipy.stats import binomtest

    answers = [True] * yes + [False] * (n - yes)
    if n:
        assert most(answers) == (binomtest(yes, n, 0.5, alternative="greater").pvalue < 0.001)
        assert few(answers) == (binomtest(yes, n, 0.5, alternative="less").pvalue < 0.001)
    assert (most(answers), few(answers)) == (above, below)
