"""The log-probability of a set of tokens after a request, against the plain forward pass."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lm_audit.errors import DataError, UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=259, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    module = LlamaForCausalLM(config)
    module.train(False)
    return LanguageModel(module, byte_tokenizer(64), name="random")


def plain(model: LanguageModel, ids: list[int], token_ids: list[int]) -> float:
    with torch.no_grad():
        logits = model.module(input_ids=torch.tensor([ids])).logits[0, -1].double()
    return float((logits[token_ids].logsumexp(0) - logits.logsumexp(0)).item())


def test_mass_equals_the_plain_forward_whatever_shares_the_call(model: LanguageModel) -> None:
    requests = [([5, 6], [7, 8]), ([5, 6], []), ([5], [6, 7]), ([9], [])]
    mass = model.next_token_log_mass(requests, [40, 41, 42, 41], bos="none")
    expected = [plain(model, [*prefix, *target], [40, 41, 42]) for prefix, target in requests]
    assert mass.tolist() == pytest.approx(expected, abs=1e-5)


def test_mass_of_the_whole_vocabulary_is_one(model: LanguageModel) -> None:
    assert model.next_token_log_mass([("ab", "c")], range(259)).tolist() == pytest.approx([0.0], abs=1e-6)


def test_mass_of_one_token_is_its_log_probability(model: LanguageModel) -> None:
    mass = model.next_token_log_mass([([5, 6], [7])], [8], bos="none")
    assert mass[0] == pytest.approx(model.loglikelihood([([5, 6, 7], [8])], bos="none")[0].total, abs=1e-6)


def test_nothing_before_the_set_is_an_error(model: LanguageModel) -> None:
    with pytest.raises(DataError, match="request 1"):
        model.next_token_log_mass([([5], []), ([], [])], [8], bos="none")


@pytest.mark.parametrize(
    ("ids", "says"),
    [([8, 259], r"holds 259, .* vocabulary of random \(0 to 258\)"), ([-1], "holds -1"), ([], "token_ids is empty")],
)
def test_a_set_of_tokens_that_are_none(model: LanguageModel, ids: list[int], says: str) -> None:
    """A negative number counted from the end of the vocabulary, without a word."""
    with pytest.raises(UsageError, match=says):
        model.next_token_log_mass([([5], [6])], ids)
