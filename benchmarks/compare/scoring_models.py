"""The models of the comparison: SmolLM2 where it can be had, else a random model of its shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from compare.scoring_lists import bias_grid, shared_contexts, unrelated_sentences

SHAPES: dict[str, dict[str, int]] = {
    "135M-shaped": {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    },
    "1B-shaped": {
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
}


def load(name: str, device: str, dtype: torch.dtype) -> tuple[Any, Any, str]:
    """(module, tokenizer, what it is). ``smollm2`` falls back to ``135M-shaped``, with a tokenizer trained here."""
    if name == "smollm2":
        try:
            from lm_audit.models import load_model

            model = load_model("smollm2", device=device, dtype=str(dtype).removeprefix("torch."))
            return model.module, model.tokenizer, "SmolLM2-135M-Instruct"
        except Exception as error:
            print(f"smollm2 is not at hand ({error}); a random model of its shape takes its place")
            name = "135M-shaped"
    return _random_model(name, device, dtype), _own_tokenizer(), f"random {name}"


def _random_model(name: str, device: str, dtype: torch.dtype) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape: dict[str, Any] = SHAPES[name]
    config = LlamaConfig(**shape, max_position_embeddings=2048, tie_word_embeddings=True, dtype=dtype)
    with torch.device(device):
        module: Any = LlamaForCausalLM(config)
    return module.to(dtype).eval()


def _own_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=4000, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    texts = [a + b for a, b in bias_grid() + shared_contexts() + unrelated_sentences()]
    tokenizer.train_from_iterator(texts, trainer)
    wrapper: Callable[..., Any] = PreTrainedTokenizerFast
    return wrapper(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
