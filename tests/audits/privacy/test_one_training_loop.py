"""SFT, DPO and DP go through one loop; losses as they were when each had its own (float32, one thread)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lm_audit.audits.privacy.stages.config import DpSettings, TrainSettings
from lm_audit.audits.privacy.training.dp import train_texts_privately
from lm_audit.audits.privacy.training.dpo import train_preferences
from lm_audit.audits.privacy.training.sft import train_texts
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.toy.tiny_text import seeded_text
from lm_audit.models.toy.training import one_thread

SETTINGS = TrainSettings(epochs=2, lr=1e-3, batch_size=4)
TOKENIZER = byte_tokenizer(256)
TEXTS = seeded_text(24, 1)
PAIRS = [{"prompt": text[:20], "chosen": text[20:40], "rejected": "no"} for text in TEXTS]


def small() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    return LlamaForCausalLM(LlamaConfig(vocab_size=259, num_key_value_heads=2, max_position_embeddings=256, **sizes))


def privately(epsilon: float, module: LlamaForCausalLM | None = None) -> list[float]:
    dp = DpSettings(epsilon)
    return train_texts_privately(module or small(), TOKENIZER, TEXTS, SETTINGS, dp, seed=1).progress.losses


RUNS: dict[str, tuple[Callable[[], list[float]], list[float]]] = {
    "dp": (lambda: privately(3.0), [5.564599, 5.560055, 5.551671]),
    "dp without noise": (lambda: privately(math.inf), [5.446749, 5.399953, 5.385511]),
    "sft": (
        lambda: train_texts(small(), TOKENIZER, TEXTS, SETTINGS, seed=1, stage="sft").losses,
        [5.402623, 5.369496],
    ),
    "dpo": (
        lambda: train_preferences(small(), TOKENIZER, PAIRS, SETTINGS, beta=0.1, seed=1, stage="dpo").losses,
        [0.526971, 0.489331],
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_losses_are_what_they_were(run: str) -> None:
    train, expected = RUNS[run]
    with one_thread():
        found = train()
    assert found[-len(expected) :] == pytest.approx(expected, abs=1e-3)


def test_a_parameter_without_gradient_stays_and_the_others_are_trained_privately() -> None:
    module = small()
    module.pooler = torch.nn.Linear(32, 32)
    pooler, head = module.pooler.weight.clone(), module.lm_head.weight.clone()
    with one_thread():
        losses = privately(3.0, module)
    assert losses[-3:] == pytest.approx(RUNS["dp"][1], abs=1e-3)
    assert torch.equal(module.pooler.weight, pooler) and module.pooler.weight.requires_grad
    assert not torch.equal(module.lm_head.weight, head)
