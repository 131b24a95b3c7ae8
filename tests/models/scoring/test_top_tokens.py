"""The most likely token at a scored position, with and without penalty, against ``generate`` of transformers."""

from __future__ import annotations

import pytest
import torch

from lm_audit.errors import UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model
from tests.models.pretrained import llama


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


PROMPTS = ["The small lamp was near the", "Nobody knew why a nurse", "aaaa aaaa aaaa aa", "A. red\nB. gr"]


@pytest.mark.parametrize("penalty", [1.0, 1.05, 1.5, 0.7])
def test_the_next_token_is_what_generate_writes(tiny: LanguageModel, penalty: float) -> None:
    prompts = [list(tiny.tokenizer(text)["input_ids"]) for text in PROMPTS]
    scores = tiny.loglikelihood([(ids, [5]) for ids in prompts], top=True, repetition_penalty=penalty)
    for ids, score in zip(prompts, scores, strict=True):
        written = llama(tiny.module).generate(
            torch.tensor([ids]), max_new_tokens=1, do_sample=False, repetition_penalty=penalty, pad_token_id=0
        )
        assert score.top_id == written[0, -1]
        assert score.top_lead is not None and score.top_lead >= 0


def test_without_a_penalty_rank_zero_is_the_top_token(tiny: LanguageModel) -> None:
    requests = [(text[:cut], text[cut:]) for text in PROMPTS for cut in range(1, len(text))]
    found = 0
    for plain, top in zip(tiny.loglikelihood(requests), tiny.loglikelihood(requests, top=True), strict=True):
        assert plain.top_id is None
        assert (top.top_id == top.token_ids[0]) == (top.ranks[0] == 0)
        assert (top.logprobs == plain.logprobs).all()
        assert top.top_margin == pytest.approx(top.top_lead)
        found += top.top_id == top.token_ids[0]
    assert 0 < found < len(requests)


def test_the_margin_knows_no_penalty(tiny: LanguageModel) -> None:
    [plain] = tiny.loglikelihood([(PROMPTS[0], "abc")], top=True)
    [penalised] = tiny.loglikelihood([(PROMPTS[0], "abc")], top=True, repetition_penalty=1.4)
    assert penalised.top_margin == pytest.approx(plain.top_margin, abs=1e-4)
    assert penalised.logprobs == pytest.approx(plain.logprobs, abs=1e-5)


def test_nothing_scored_has_no_top_token(tiny: LanguageModel) -> None:
    [empty] = tiny.loglikelihood([("", [5])], bos="none", top=True)
    assert len(empty) == 0 and empty.top_id is None


def test_a_penalty_must_be_positive(tiny: LanguageModel) -> None:
    with pytest.raises(UsageError, match="repetition_penalty is 0"):
        tiny.loglikelihood([("a", "b")], top=True, repetition_penalty=0)
