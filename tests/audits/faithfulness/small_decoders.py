"""Random little decoders of the covered architectures, with everything that has to be handled made large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": None,
}


def small_decoder(kind: str, **overrides: Any) -> Any:
    """A random model of a kind; weights, biases and norms are spread widely so that nothing is ignored unnoticed."""
    import transformers as tf

    configs: dict[str, Callable[..., Any]] = {
        "llama": lambda **o: tf.LlamaForCausalLM(tf.LlamaConfig(**{**SIZES, **o})),
        "llama_tied": lambda **o: tf.LlamaForCausalLM(tf.LlamaConfig(**{**SIZES, "tie_word_embeddings": True, **o})),
        "llama_biases": lambda **o: tf.LlamaForCausalLM(
            tf.LlamaConfig(**{**SIZES, "attention_bias": True, "tie_word_embeddings": False, **o})
        ),
        "qwen2": lambda **o: tf.Qwen2ForCausalLM(tf.Qwen2Config(**{**SIZES, **o})),
        "qwen3": lambda **o: tf.Qwen3ForCausalLM(tf.Qwen3Config(**{**SIZES, "head_dim": 16, **o})),
        "mistral": lambda **o: tf.MistralForCausalLM(tf.MistralConfig(**{**SIZES, "sliding_window": None, **o})),
        "mistral_window": lambda **o: tf.MistralForCausalLM(tf.MistralConfig(**{**SIZES, "sliding_window": 6, **o})),
        "qwen3_window": lambda **o: tf.Qwen3ForCausalLM(
            tf.Qwen3Config(
                **{
                    **SIZES,
                    "head_dim": 16,
                    "use_sliding_window": True,
                    "sliding_window": 6,
                    "max_window_layers": 1,
                    **o,
                }
            )
        ),
        "gemma2": lambda **o: tf.Gemma2ForCausalLM(tf.Gemma2Config(**{**SIZES, "head_dim": 16, **o})),
        "gpt2": lambda **o: tf.GPT2LMHeadModel(
            tf.GPT2Config(
                vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=None, eos_token_id=2
            )
        ),
        "olmo2": lambda **o: tf.Olmo2ForCausalLM(tf.Olmo2Config(**{**SIZES, **o})),
        "granite": lambda **o: tf.GraniteForCausalLM(tf.GraniteConfig(**{**SIZES, "residual_multiplier": 0.5, **o})),
        "granite_embeddings": lambda **o: tf.GraniteForCausalLM(
            tf.GraniteConfig(**{**SIZES, "embedding_multiplier": 3.0, **o})
        ),
        "granite_logits": lambda **o: tf.GraniteForCausalLM(tf.GraniteConfig(**{**SIZES, "logits_scaling": 4.0, **o})),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = configs[kind](**overrides).eval().requires_grad_(False)
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(
                    1.0 + 0.5 * torch.randn(parameter.shape) if parameter.mean() == 1 else torch.randn(parameter.shape)
                )
            else:
                parameter.copy_(0.35 * torch.randn(parameter.shape))
    return model


COVERED = ("llama", "llama_tied", "llama_biases", "qwen2", "qwen3", "mistral", "mistral_window", "qwen3_window")
IDS = [5, 17, 3, 44, 8, 29, 11, 5, 52, 37, 8, 21, 60, 13, 4, 9, 31, 2]
