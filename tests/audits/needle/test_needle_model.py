"""Answers of real models: shared prefixes, scores, sizes, and the embedded model on short prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.needle import Haystack, ModelAnswerer, NeedleTask, answered, build_sample, evaluate
from lm_audit.audits.needle.answers.answerers import too_long
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.errors import ContextError, DataError
from lm_audit.models import LanguageModel
from lm_audit.models.generation.prefix_reader import Reader
from lm_audit.models.generation.shared_prefix import complete
from lm_audit.models.text.tokenizer import Tokenizer
from tests.present import present


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    from lm_audit.models.toy.tiny_model import tiny_model

    return tiny_model()


@pytest.fixture(scope="module")
def prompts(tiny: LanguageModel) -> list[list[int]]:
    rng = np.random.default_rng(1)
    trunk: list[int] = rng.integers(10, 200, 90).tolist()
    found = [trunk[:cut] + rng.integers(10, 200, 40).tolist() for cut in (0, 30, 60, 90)]
    return [*found, trunk, trunk, found[1][:50]]


def test_completions_equal_those_of_the_prompts_by_themselves(tiny: LanguageModel, prompts: list[list[int]]) -> None:
    targets = [[20 + i, 40, 50 + i][: 1 + i % 3] for i in range(len(prompts))]
    found = complete(tiny, prompts, targets, max_new_tokens=12)
    generated = tiny.generate(prompts, max_new_tokens=12)
    scored = tiny.loglikelihood(list(zip(prompts, targets, strict=True)), bos="none")
    for one, generation, scores in zip(found, generated, scored, strict=True):
        assert one.token_ids == generation.token_ids
        assert one.text == generation.text
        assert present(one.scores).logprobs == pytest.approx(scores.logprobs, abs=1e-4)
        assert present(one.scores).ranks.tolist() == scores.ranks.tolist()


def test_shared_prefixes_are_read_once(tiny: LanguageModel, prompts: list[list[int]]) -> None:
    reader = Reader(tiny)
    for prompt in sorted(prompts):
        reader.read(prompt)
    distinct = {tuple(prompt[: i + 1]) for prompt in prompts for i in range(len(prompt))}
    again = len(prompts)  # the last token of a prompt that is wholly in the cache
    assert len(distinct) <= reader.tokens_read <= len(distinct) + again
    assert reader.tokens_read < sum(map(len, prompts))


@pytest.mark.parametrize("family", ["gpt2", "mistral-window", "mamba"])
def test_other_architectures_answer_as_they_do_alone(family: str) -> None:
    """Sliding windows and state-space models, whose caches cannot be cropped, among them."""
    model = small_model(family)
    rng = np.random.default_rng(3)
    trunk: list[int] = rng.integers(3, 90, 40).tolist()
    prompts = [trunk[:cut] + rng.integers(3, 90, 9).tolist() for cut in (5, 20, 40)]
    targets = [[5, 6, 7], [8], [9, 10]]
    found = complete(model, prompts, targets, max_new_tokens=6)
    for prompt, target, one in zip(prompts, targets, found, strict=True):
        alone = complete(model, [prompt], [target], max_new_tokens=6)[0]
        assert one.token_ids == alone.token_ids
        assert present(one.scores).logprobs == pytest.approx(present(alone.scores).logprobs, abs=1e-4)
        whole = model.loglikelihood([(prompt, target)], bos="none")[0]
        assert present(one.scores).logprobs == pytest.approx(whole.logprobs, abs=1e-4)


def small_model(family: str) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, MambaConfig, MistralConfig, PretrainedConfig

    from lm_audit.models import LanguageModel
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    torch.manual_seed(0)
    configs: dict[str, Callable[[], PretrainedConfig]] = {
        "gpt2": lambda: GPT2Config(vocab_size=259, n_embd=32, n_layer=2, n_head=2, n_positions=128),
        "mistral-window": lambda: MistralConfig(
            vocab_size=259,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            sliding_window=16,
            max_position_embeddings=128,
        ),
        "mamba": lambda: MambaConfig(vocab_size=259, hidden_size=32, state_size=4, num_hidden_layers=2),
    }
    build: Callable[..., Any] = AutoModelForCausalLM.from_config
    module = build(configs[family]()).eval()
    return LanguageModel(module, byte_tokenizer(128), name=family)


def test_enough_ends_a_continuation(tiny: LanguageModel) -> None:
    found = complete(tiny, [[40, 41, 42]], [[50]], max_new_tokens=30, enough=lambda index, text: len(text) >= 5)[0]
    assert found.finish_reason == "enough"
    assert len(found.token_ids) < 30


def test_prompt_beyond_the_context_is_an_error(tiny: LanguageModel) -> None:
    context = tiny.module.config.max_position_embeddings
    with pytest.raises(ContextError, match=f"reads at most {context}"):
        complete(tiny, [[40] * context], [[50, 51]], max_new_tokens=2)


@pytest.fixture(scope="module")
def short_samples(tiny: LanguageModel) -> list[Sample]:
    haystack = Haystack("The cat sat on the mat. The dog ran off. It rained all day. " * 40, tiny.tokenizer)
    return [
        build_sample(
            haystack, length=450, depth=depth, needle=NeedleTask(), seed=1, tokens_to_generate=8, template="base"
        )
        for depth in (0, 50, 100)
    ]


def test_model_that_never_read_a_needle_finds_none(tiny: LanguageModel, short_samples: list[Sample]) -> None:
    evidence = evaluate(tiny, short_samples)
    assert evidence.metrics["needle.accuracy"].value == 0.0
    assert present(evidence.metrics["needle.value_logprob"].value) < -5
    assert evidence.metrics["needle.cut_answers"].n == 3


def test_values_logprob_is_that_of_the_scoring_engine(tiny: LanguageModel, short_samples: list[Sample]) -> None:
    found = answered(tiny, short_samples)
    requests = [(sample.prompt, f" {sample.outputs[0]}") for sample in short_samples]
    for one, scores in zip(found, tiny.loglikelihood(requests), strict=True):
        assert one.answer.value_logprob == pytest.approx(scores.total, abs=1e-3)


def test_samples_made_for_another_tokenizer_are_refused(tiny: LanguageModel, smollm2_tokenizer: Tokenizer) -> None:
    haystack = Haystack("essay", smollm2_tokenizer)
    sample = build_sample(haystack, length=300, depth=50, needle=NeedleTask(), seed=1, tokens_to_generate=8)
    with pytest.raises(DataError, match="another tokenizer"):
        ModelAnswerer(tiny).answer([sample])


def test_samples_beyond_the_context_are_refused_with_both_numbers(tiny: LanguageModel) -> None:
    context = tiny.module.config.max_position_embeddings
    reason = too_long(tiny, context + 1)
    assert str(context + 1) in present(reason)
    assert f"reads at most {context} (its context window)" in present(reason)
    assert too_long(tiny, context) is None


@pytest.mark.slow
def test_embedded_model_finds_needles_in_short_prompts() -> None:
    from lm_audit.models import load_model

    model = load_model("smollm2", device="cpu")
    haystack = Haystack("essay", model.tokenizer)
    samples = [
        build_sample(haystack, length=length, depth=depth, needle=NeedleTask(), seed=1, tokens_to_generate=32)
        for length in (256, 1024)
        for depth in (0, 50, 100)
    ]
    evidence = evaluate(model, samples)
    assert evidence.metrics["needle.accuracy"].value == 1.0
    assert present(evidence.metrics["needle.value_logprob"].value) > -3
