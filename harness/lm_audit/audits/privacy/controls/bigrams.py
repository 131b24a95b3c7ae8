"""A model that predicts each token from the one before it, and what it says on paper.

The layers of a small Llama add nothing, so that its answer is a formula of two matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.causal_module import DecoderModule

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paper:
    """A model and what it says on paper: log-probabilities of each token after each [tokens before, tokens]."""

    model: LanguageModel
    table: Floats

    @classmethod
    def of(cls, model: LanguageModel) -> Paper:
        """Log softmax of head x normalised embedding of the token before."""
        module: Any = model.module
        embedding, head = (
            weight.detach().double().numpy() for weight in (module.model.embed_tokens.weight, module.lm_head.weight)
        )
        scale = np.sqrt((embedding**2).mean(axis=1, keepdims=True) + module.config.rms_norm_eps)
        logits = (embedding / scale) @ head.T
        table = logits - np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        return cls(model, np.asarray(table - logits.max(axis=1, keepdims=True), dtype=np.float64))

    def tokens(self, text: str) -> Floats:
        """Log-probabilities of a text's tokens, in nats."""
        return self.choices(text)[0]

    def choices(self, text: str) -> tuple[Floats, Floats]:
        """Log-probabilities of a text's tokens, and mean and spread (2, tokens) of what stood to be chosen there."""
        from lm_audit.models.text.byte_tokenizer import BOS

        # A byte is a token here: the secret's characters are its tokens.
        ids = self.model.tokenizer(text, add_special_tokens=False).input_ids
        rows = self.table[np.array([BOS, *ids[:-1]])]
        weights = np.exp(rows)
        mean = (weights * rows).sum(axis=1)
        spread = np.sqrt((weights * (rows - mean[:, None]) ** 2).sum(axis=1))
        return rows[np.arange(len(ids)), ids], np.stack([mean, spread])


def bigram_model(seed: int) -> LanguageModel:
    """A byte-level Llama whose attention and MLP add nothing, with seeded matrices before and after them."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lm_audit.models import LanguageModel
    from lm_audit.models.text.byte_tokenizer import TOKEN_IDS, byte_tokenizer

    config = LlamaConfig(
        **TOKEN_IDS,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module: DecoderModule = LlamaForCausalLM(config)
        module.eval()
        for layer in module.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        module.model.embed_tokens.weight.normal_()
        module.lm_head.weight.normal_(std=0.5)
    return LanguageModel(module.requires_grad_(False), byte_tokenizer(256), name="bigrams")
