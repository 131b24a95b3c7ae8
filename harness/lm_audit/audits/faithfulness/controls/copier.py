"""A model that copies by construction, and the samples on which it must: what the controls are made of.

Its weights are written down, not trained, so that it is the same on every machine and what it uses is known: one
attention head looks exactly ``BACK`` positions back and writes the letter that it finds there into the prediction. All
other heads, the second layer and the MLPs hold small random weights, which disturb without deciding.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.models.causal_module import DecoderModule

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

ASK = "="
COPIED, BACK = 3, 10
"""The answer repeats the ``COPIED`` letters that begin ``BACK`` positions before the question sign."""

HEADS, WIDTH = 4, 68
"""Heads and their width: the residual stream holds one dimension a token of the vocabulary and one that is constant."""

MARGIN = 6.0
"""Nats by which the copying head's score falls one position beside its place."""

GAIN, SHARPNESS, NOISE = 4.0, 0.6, 0.02
"""Size of a copied letter in the residual stream (a token's own is 1), weight of the final norm, spread of noise."""


def copy_samples(count: int, seed: int) -> tuple[Sample, ...]:
    """``count`` different texts of 14 to 22 random letters, of which three at a known place are repeated at the end.

    The same for the same seed.
    """
    rng = np.random.default_rng([seed, 3])
    found: dict[str, Sample] = {}
    while len(found) < count:
        sample = _copy_sample(rng, f"copy-{len(found)}")
        found.setdefault(sample.prompt, sample)
    return tuple(found.values())


def _copy_sample(rng: np.random.Generator, name: str) -> Sample:
    length = int(rng.integers(14, 23))
    letters = "".join(rng.choice(list(string.ascii_lowercase), size=length))
    start = length - BACK
    answer = letters[start : start + COPIED]
    return Sample(name, letters + ASK, answer, ((start, start + COPIED),), output=(0, COPIED))


def copier(seed: int = 0, device: object = "cpu") -> LanguageModel:
    """The model, float32; ``seed`` draws the weights that only disturb."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.text.byte_tokenizer import TOKEN_IDS, VOCABULARY, byte_tokenizer

    config = LlamaConfig(
        **TOKEN_IDS,
        hidden_size=HEADS * WIDTH,
        intermediate_size=HEADS * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: DecoderModule = LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.model.layers.parameters():
            if parameter.ndim > 1:
                parameter.copy_(NOISE * torch.randn(parameter.shape, generator=generator))
        _write_embeddings(module, VOCABULARY)
        _write_copying_head(module, VOCABULARY)
    ready = module.to(device, torch.float32).eval().requires_grad_(False)
    return LanguageModel(ready, byte_tokenizer(512), name="copier")


def _write_embeddings(module: DecoderModule, constant: int) -> None:
    """A token is 1 in its own dimension and 1 in the constant one."""
    weight = module.model.embed_tokens.weight
    weight.zero_()
    weight.fill_diagonal_(1.0)
    weight[:, constant] = 1.0
    module.model.norm.weight.fill_(SHARPNESS)


def _write_copying_head(module: DecoderModule, constant: int) -> None:
    """Head 0 of layer 0: rotary scores that peak ``BACK`` positions back, letters as values.

    A query of phase -theta * BACK and a key of phase 0 score cos(theta * (distance - BACK)) in each rotary frequency.
    """
    import torch

    attention = module.model.layers[0].self_attn
    size = (HEADS * WIDTH / 2) ** 0.5  # what the norm makes of a 1 among two
    half = WIDTH // 2
    base = module.config.rope_parameters["rope_theta"]
    frequency = torch.tensor([base ** (-index / half) for index in range(half)])
    used = frequency > pi / 60  # slower ones are flat over a text and would only add up
    strength = MARGIN * WIDTH**0.5 / float((1 - frequency[used].cos()).sum())
    for weight in (attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight):
        weight[:WIDTH].zero_()
    query, key = attention.q_proj.weight, attention.k_proj.weight
    query[:half, constant] = used * (frequency * -BACK).cos() * strength / size
    query[half:WIDTH, constant] = used * (frequency * -BACK).sin() * strength / size
    key[:half, constant] = used / size
    attention.o_proj.weight[:, :WIDTH].zero_()
    for index, token in enumerate(_letter_tokens()):
        attention.v_proj.weight[index, token] = 1.0 / size
        attention.o_proj.weight[token, index] = GAIN


def _letter_tokens() -> list[int]:
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    ids: list[int] = byte_tokenizer(512)(string.ascii_lowercase, add_special_tokens=False).input_ids
    return ids


def copied(model: LanguageModel, samples: Sequence[Sample]) -> list[bool]:
    """Whether each sample's letters are all the model's first choice."""

    def ids(text: str | None) -> list[int]:
        return list(model.tokenizer(text or "", add_special_tokens=False).input_ids)

    requests = [(ids(sample.prompt), ids(sample.generation)) for sample in samples]
    return [bool(score.greedy) for score in model.loglikelihood(requests, bos="none")]
