"""A GGUF file of another architecture than Llama is the model that it was made of, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from tests.models.files.exported_gguf import SHAPE, STATED, export_gguf, random_model

IDS = torch.arange(3, 50)[None]
HEADS = {"attention.key_length": 8, "attention.value_length": 8}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
STATED_EXPERTS = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 24}
GEMMA = {"head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8}
CAPS = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
WIDE = {"rope_type": "default", "rope_theta": 1000000.0}
NORMS = {key: value for key, value in STATED.items() if "rms" not in key} | {"attention.layer_norm_epsilon": 1e-5}


def plus_one(name: str, value: np.ndarray) -> np.ndarray:
    """Norms to which their class adds 1 are stored with it."""
    return value + 1 if name.endswith("norm.weight") else value


def transposed(name: str, value: np.ndarray) -> np.ndarray:
    return value.T if value.ndim == 2 and name.startswith("blk") else value


def gemma3(layers: int, full: dict[str, Any]) -> dict[str, Any]:
    kinds = ["full_attention" if number % 6 == 5 else "sliding_attention" for number in range(layers)]
    rope = {"rope_parameters": {"full_attention": full, "sliding_attention": PLAIN}}
    return {**GEMMA, **rope, "layer_types": kinds, "num_hidden_layers": layers}


MODELS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], Any]] = {
    "qwen2": ("Qwen2Config", "qwen2", {}, {}, None),
    "qwen3": ("Qwen3Config", "qwen3", {"head_dim": 8}, HEADS, None),
    "qwen3 with wide heads": (
        *("Qwen3Config", "qwen3", {"head_dim": 16}),
        *({"attention.key_length": 16, "attention.value_length": 16}, None),
    ),
    "qwen3 moe": (
        *("Qwen3MoeConfig", "qwen3moe", {**EXPERTS, "head_dim": 8, "norm_topk_prob": True}),
        *({**STATED_EXPERTS, **HEADS}, None),
    ),
    "qwen2 moe": (
        *("Qwen2MoeConfig", "qwen2moe", {**EXPERTS, "shared_expert_intermediate_size": 40}),
        *({**STATED_EXPERTS, "expert_shared_feed_forward_length": 40}, None),
    ),
    "gemma2": (
        *("Gemma2Config", "gemma2", {**GEMMA, **CAPS}),
        *({**HEADS, **CAPS, "attention.sliding_window": 8}, plus_one),
    ),
    "gemma2 of 27B": (
        "Gemma2Config",
        "gemma2",
        {**GEMMA, **CAPS, "num_hidden_layers": 46, "hidden_size": 48, "query_pre_attn_scalar": 12},
        {**HEADS, **CAPS, "attention.sliding_window": 8, "block_count": 46, "embedding_length": 48},
        plus_one,
    ),
    "gemma3": (
        *("Gemma3TextConfig", "gemma3", gemma3(6, WIDE)),
        *({**HEADS, "attention.sliding_window": 8, "block_count": 6, "rope.freq_base": 1000000.0}, plus_one),
    ),
    "gemma3 with scaled positions": (
        *("Gemma3TextConfig", "gemma3", gemma3(6, {**WIDE, "rope_type": "linear", "factor": 8.0})),
        {
            **{**HEADS, "attention.sliding_window": 8, "block_count": 6, "rope.freq_base": 1000000.0},
            **{"rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
        },
        plus_one,
    ),
    "nemotron": (
        *("NemotronConfig", "nemotron", {"head_dim": 8, "rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5}}),
        *({**NORMS, "rope.dimension_count": 4}, plus_one),
    ),
    "starcoder2": ("Starcoder2Config", "starcoder2", {"norm_epsilon": 1e-5}, NORMS, None),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_model_that_it_was_made_of(name: str, tmp_path: Path, own_cache: Path) -> None:
    import transformers

    config_class, architecture, settings, stated, stored = MODELS[name]
    module = random_model(getattr(transformers, config_class)(**{**SHAPE, **settings}))
    base = NORMS if "attention.layer_norm_epsilon" in stated else STATED
    path = export_gguf(tmp_path / "made.gguf", module, architecture, {**base, **stated}, stored)

    found = load_model(path, device="cpu").module(IDS).logits
    torch.testing.assert_close(found, module(IDS).logits, rtol=1e-4, atol=1e-4)


def test_the_table_of_names_is_made_once_a_layer_count(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers asks for it anew for each of the hundreds of parts of a module."""
    import gguf
    from transformers import Qwen2Config

    path = export_gguf(tmp_path / "made.gguf", random_model(Qwen2Config(**SHAPE)), "qwen2", STATED)
    made, asked = gguf.get_tensor_name_map, []

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return made(*arguments)

    monkeypatch.setattr(gguf, "get_tensor_name_map", counted)
    load_model(path, device="cpu")
    assert asked and len(asked) == len(set(asked))
    assert gguf.get_tensor_name_map is counted


def test_gemma_with_bytes_for_tokens(tmp_path: Path, own_cache: Path) -> None:
    """Its class asks for tokens that such a file has not."""
    from transformers import Gemma2Config

    _, architecture, settings, stated, stored = MODELS["gemma2"]
    module = random_model(Gemma2Config(**{**SHAPE, **settings}))
    path = export_gguf(tmp_path / "made.gguf", module, architecture, {**STATED, **stated}, stored, byte_level=True)

    model = load_model(path, device="cpu")
    torch.testing.assert_close(model.module(IDS).logits, module(IDS).logits, rtol=1e-4, atol=1e-4)
    assert model.tokenizer.decode(model.tokenizer("a box").input_ids) == "a box"


def test_lengthened_without_factors(tmp_path: Path, own_cache: Path) -> None:
    from transformers import Phi3Config

    module = random_model(Phi3Config(**SHAPE, sliding_window=None, original_max_position_embeddings=64))
    stated = {**STATED, "rope.dimension_count": 8, "rope.scaling.original_context_length": 16}
    with pytest.raises(ModelError, match=r"lengthens 16 positions to 64 and lacks rope_factors_long\.weight"):
        load_model(export_gguf(tmp_path / "made.gguf", module, "phi3", stated), device="cpu")


def test_positions_of_another_number_than_the_class_has(tmp_path: Path, own_cache: Path) -> None:
    from transformers import GPT2Config

    shape = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": SHAPE["vocab_size"]}
    module = random_model(GPT2Config(**shape, bos_token_id=0, eos_token_id=1, initializer_range=0.3))
    gone = ("rope.freq_base", "attention.head_count_kv")
    stated = {key: value for key, value in NORMS.items() if key not in gone} | {"feed_forward_length": 128}

    path = export_gguf(tmp_path / "made.gguf", module, "gpt2", stated, transposed)
    torch.testing.assert_close(load_model(path, device="cpu").module(IDS).logits, module(IDS).logits)
    path = export_gguf(tmp_path / "odd.gguf", module, "gpt2", stated)
    with pytest.raises(ModelError, match=r"of another shape: transformer\.h\.0\.attn\.c_attn\.weight has"):
        load_model(path, device="cpu")
