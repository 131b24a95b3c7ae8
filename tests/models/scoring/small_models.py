"""Small random models of many architectures, and a small tokenizer whose tokens merge, for tests of the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from lm_audit.models.language_model import LanguageModel

VOCABULARY = 320
_TEXT = [
    "The keeper closed the door. The keeper opened the box.\n\nWas the budget ready? It was not ready.",
    "the bud, the budget, the budgets; closed., opened., ready.\n\n naïve café 東京 😀",
]


@cache
def small_tokenizer(bos: bool = False) -> Any:
    """A byte-level BPE of 320 tokens that merges across words' ends (".\\n\\n", "budget"); with ``bos`` it adds one."""
    tokenizer = Tokenizer(models.BPE())
    # Line breaks stay with the punctuation before them, as in Llama 3 and Qwen.
    words = pre_tokenizers.Split(Regex(r" ?\p{L}+|[^\s\p{L}]+\n*|\s+"), "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXT * 20, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    wrapper: Callable[..., Any] = transformers.PreTrainedTokenizerFast
    return wrapper(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 96,
    "initializer_range": 0.3,
    "pad_token_id": None,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8}

# Class, settings. Large initial weights make every token's context matter.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _GROUPED),
    "qwen2": ("Qwen2", {**_SIZES, "num_key_value_heads": 2}),
    "qwen3": ("Qwen3", _GROUPED),
    "gpt2": ("GPT2", {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 96}),
    "gpt_neox": ("GPTNeoX", _SIZES),
    "gemma": ("Gemma", _GROUPED),
    "gemma2": ("Gemma2", {**_GROUPED, "sliding_window": 16, "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3", {**_GROUPED, "num_hidden_layers": 3, "sliding_window": 16}),
    "mistral": ("Mistral", {**_GROUPED, "sliding_window": 12}),
    "cohere": ("Cohere", {**_GROUPED, "logit_scale": 0.25}),
    "phi": ("Phi", _SIZES),
    "gpt_neo": (
        "GPTNeo",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 12,
            "max_position_embeddings": 96,
        },
    ),
    "bloom": ("Bloom", {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mamba": (
        "Mamba",
        {"vocab_size": VOCABULARY, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4},
    ),
}


def small_module(architecture: str, *, seed: int = 0, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A random model of an architecture; ``changes`` override its configuration."""
    prefix, settings = ARCHITECTURES[architecture]
    names = (f"{prefix}TextConfig", f"{prefix}Config")
    config_class = next(getattr(transformers, n) for n in names if hasattr(transformers, n))
    torch.manual_seed(seed)
    config = config_class(**{"bos_token_id": 0, "eos_token_id": 1, **settings, **changes})
    names = (f"{prefix}ForCausalLM", f"{prefix}LMHeadModel")
    module = next(getattr(transformers, n) for n in names if hasattr(transformers, n))(config)
    return module.to(dtype).eval()


@cache
def small_model(architecture: str, bos: bool = False) -> LanguageModel:
    """A cached model with the small tokenizer."""
    return LanguageModel(small_module(architecture), small_tokenizer(bos), name=f"small-{architecture}")
