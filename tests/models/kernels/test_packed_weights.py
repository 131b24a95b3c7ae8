"""Products over weights that were laid out once: the same numbers, for a call alone, and never of old weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lm_audit.models import LanguageModel
from lm_audit.models.kernels import packed_weights
from lm_audit.models.kernels.packed_weights import PackedWeights, packed
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import architecture
from tests.models.pretrained import pretrained

REQUESTS = [([5, 6, 7, 8], [9, 10, 11]), ([5, 6, 7, 8], [12]), ([90, 91], [3, 4, 5])]
PROMPTS = [[5, 6, 7], [5, 6, 200, 9, 10], [77]]
SHARED = {"llama": [3, 2], "llama_bias": [3, 2], "qwen2_swa": [3, 2], "gemma3_text": [3, 2], "gpt_neox": [], "phi": [3]}
"""Of one layer, how many products are one: queries, keys and values; gate and up."""


def wrapped(name: str, wanted: bool | None) -> LanguageModel:
    model = LanguageModel(copy.deepcopy(architecture(name)), byte_tokenizer(128), name=name)
    model.packed_weights = wanted
    return model


@pytest.mark.parametrize("name", [*SHARED, "gpt2", "falcon", "mixtral", "olmo2"])
def test_scores_and_texts_are_those_of_plain_products(name: str) -> None:
    plain, laid_out = wrapped(name, False), wrapped(name, True)

    scores = [model.loglikelihood(REQUESTS, bos="none") for model in (plain, laid_out)]
    texts = [[one.token_ids for one in model.generate(PROMPTS, max_new_tokens=8)] for model in (plain, laid_out)]

    for one, other in zip(*scores, strict=True):
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)
    assert texts[0] == texts[1]
    assert packed_weights._KNOWN[laid_out.module] is not None
    assert plain.module not in packed_weights._KNOWN


@torch.inference_mode()
@pytest.mark.parametrize("name", SHARED)
def test_layers_of_one_input_share_a_product(name: str) -> None:
    module = copy.deepcopy(architecture(name))
    with torch.no_grad():
        for one in module.parameters():
            one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(one.ndim)))
    made = PackedWeights(module)

    sizes = [len(group.layers) for group in made._groups]
    shared = SHARED[name] * module.config.num_hidden_layers
    assert sorted(size for size in sizes if size > 1) == sorted(shared)
    assert made.bytes == 4 * sum(one.weight.numel() for one in module.modules() if type(one) is nn.Linear)
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    want = module(input_ids=ids).logits
    with made():
        assert sum("forward" in vars(one) for one in module.modules()) == sum(sizes)
        assert torch.allclose(module(input_ids=ids).logits, want, atol=1e-4)
    assert not any("forward" in vars(one) for one in module.modules())
    assert torch.equal(module(input_ids=ids).logits, want)


@torch.inference_mode()
def test_another_input_gets_its_own_product() -> None:
    module = copy.deepcopy(architecture("llama"))
    attention = module.model.layers[0].self_attn
    x, other = torch.randn(2, 3, 64).unbind()

    with PackedWeights(module)():
        attention.q_proj(x)
        found, own = attention.k_proj(other), attention.k_proj(x)

    assert torch.allclose(found, attention.k_proj(other), atol=1e-5)
    assert torch.allclose(own, attention.k_proj(x), atol=1e-5)


def by_data(weight: Any) -> None:
    weight.data[3, 5] += 2.0


@torch.no_grad()
def by_hand(weight: Any) -> None:
    weight[[9, 10]] = weight[[10, 9]]


@pytest.mark.parametrize("change", [by_data, by_hand])
@pytest.mark.parametrize("part", ["model.layers.1.self_attn.v_proj", "model.layers.0.mlp.down_proj", "lm_head"])
def test_changed_weights_are_laid_out_anew(part: str, change: Any) -> None:
    model = wrapped("llama", True)
    before = model.loglikelihood(REQUESTS, bos="none")
    change(pretrained(model.module).get_submodule(part).weight)

    found = model.loglikelihood(REQUESTS, bos="none")

    model.packed_weights = False
    now, plain, old = (
        np.concatenate([one.logprobs for one in made])
        for made in (found, model.loglikelihood(REQUESTS, bos="none"), before)
    )
    np.testing.assert_allclose(now, plain, atol=1e-4)
    assert not np.allclose(now, old, atol=1e-4)


def test_where_it_does_not_pay_nothing_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    module = copy.deepcopy(architecture("llama"))
    monkeypatch.setattr(packed_weights, "_vendor", lambda: "AuthenticAMD")

    def lays_out(tokens: int, wanted: bool | None = None) -> bool:
        with packed(module, tokens, wanted):
            return "forward" in vars(module.lm_head)

    assert not lays_out(10**6), "a model of so few weights"
    monkeypatch.setattr(packed_weights, "_LEAST", 1)
    assert not lays_out(packed_weights.WORTH - 1) and not lays_out(10**6, wanted=False)
    monkeypatch.setattr(packed_weights, "available_memory", lambda: 10**5)
    assert not lays_out(10**6), "no memory for a copy"
    monkeypatch.undo()
    monkeypatch.setattr(packed_weights, "_LEAST", 1)
    monkeypatch.setattr(packed_weights, "_vendor", lambda: "GenuineIntel")
    assert not lays_out(10**6) and lays_out(1, wanted=True)
    monkeypatch.setattr(packed_weights, "_vendor", lambda: "AuthenticAMD")
    assert lays_out(10**6)
    packed_weights.forget(module)
    assert module not in packed_weights._KNOWN


def test_a_model_whose_answers_would_be_others_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = packed_weights._Group.product
    monkeypatch.setattr(packed_weights._Group, "product", lambda self, x: sound(self, x) * 1.01)
    model = wrapped("llama", True)
    plain = wrapped("llama", False).loglikelihood(REQUESTS, bos="none")

    found = model.loglikelihood(REQUESTS, bos="none")

    assert packed_weights._KNOWN[model.module] is None
    assert [one.logprobs.tolist() for one in found] == [one.logprobs.tolist() for one in plain]


def test_half_precision_has_nothing_to_lay_out() -> None:
    module = copy.deepcopy(architecture("llama")).to(torch.bfloat16)
    with packed(module, 10**6, True):
        assert not any("forward" in vars(one) for one in module.modules())
