"""How long a text each kind of configuration takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from lm_audit.models.context import (
    Attributes,
    attention_reach,
    changes_at_every_step,
    context_window,
    uniform_length,
    window_hint,
)


def rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


YARN = rope("yarn", factor=4.0, original_max_position_embeddings=32768)
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
LISTS = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "settings", "window"),
    [
        ("Llama", {"max_position_embeddings": 4096}, 4096),
        ("GPT2", {"n_positions": 512}, 512),
        ("GPTJ", {"n_positions": 512}, 512),
        ("Mpt", {"max_seq_len": 2048}, 2048),
        ("Rwkv", {"context_length": 1024}, 1024),
        ("OPT", {"max_position_embeddings": 2048}, 2048),
        ("Bloom", {}, None),
        ("Mamba", {}, None),
        ("Falcon", {"alibi": True}, None),
        ("Falcon", {"alibi": False, "max_position_embeddings": 2048}, 2048),
        # as model cards write it, the stated length unchanged, and as configs that state the long one do
        ("Qwen2", {"max_position_embeddings": 32768, **YARN}, 131072),
        ("Qwen3", {"max_position_embeddings": 40960, **YARN}, 131072),
        ("Qwen2", {"max_position_embeddings": 131072, **YARN}, 131072),
        ("Llama", {"max_position_embeddings": 64, **rope("dynamic", factor=4.0)}, 256),
        ("Llama", {"max_position_embeddings": 16384, **rope("linear", factor=4.0)}, 16384),
        ("Llama", {"max_position_embeddings": 131072, **rope("llama3", factor=32.0, **LLAMA3)}, 131072),
        ("Llama", {"max_position_embeddings": 8192, **rope("llama3", factor=8.0, **LLAMA3)}, 65536),
    ],
)
def test_context_windows(kind: str, settings: dict[str, Any], window: int | None) -> None:
    assert context_window(getattr(transformers, f"{kind}Config")(**settings)) == window


def test_longrope_without_the_original_length_is_of_one_length_before_and_after_loading() -> None:
    """transformers fills it in; cases are planned by the file."""
    stated = {"max_position_embeddings": 96, **rope("longrope", factor=3.0, **LISTS)}

    assert context_window(Attributes(stated)) == 288
    assert context_window(transformers.LlamaConfig(hidden_size=32, num_attention_heads=2, **stated)) == 288


def test_nested_configurations() -> None:
    gemma = transformers.AutoConfig.for_model("gemma3")
    assert context_window(gemma) == gemma.text_config.max_position_embeddings

    inner = {"max_position_embeddings": 32768, "model_type": "qwen2", "sliding_window": 64}
    own = SimpleNamespace(llm_config=inner, vision_config={"max_position_embeddings": 77})
    assert context_window(own) == 32768
    assert attention_reach(own) == 64


def test_lengths_by_the_names_of_checkpoints_with_code_of_their_own() -> None:
    assert context_window(SimpleNamespace(model_type="chatglm", seq_length=131072)) == 131072
    assert context_window(SimpleNamespace(model_type="openelm", max_context_length=2048)) == 2048
    assert context_window(SimpleNamespace(model_type="bloom", seq_length=2048)) is None
    assert context_window(SimpleNamespace(model_type="whisper", max_target_positions=448)) == 448


def test_where_rotation_depends_on_the_length() -> None:
    longrope: dict[str, Any] = {"original_max_position_embeddings": 32, "max_position_embeddings": 128}
    shape: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4}
    config = transformers.Phi3Config(**shape, **longrope, **rope("longrope", **LISTS, **longrope))
    assert uniform_length(config) == 32
    dynamic = transformers.LlamaConfig(max_position_embeddings=64, **rope("dynamic", factor=4.0))
    assert uniform_length(dynamic) == 64
    assert uniform_length(transformers.LlamaConfig()) is None
    assert not changes_at_every_step(config) and changes_at_every_step(dynamic)


def test_where_an_indexer_chooses_what_is_attended_to() -> None:
    assert uniform_length(transformers.DeepseekV32Config(index_topk=6)) == 6
    assert changes_at_every_step(transformers.DeepseekV32Config(index_topk=6))
    blocks = {"index_topk_blocks": 2, "index_block_size": 16}
    assert uniform_length(SimpleNamespace(max_position_embeddings=512, **blocks)) == 32


def test_linear_scaling_says_what_to_set() -> None:
    config = transformers.LlamaConfig(max_position_embeddings=64, **rope("linear", factor=4.0))

    assert "set it to the length that the model was trained for" in window_hint(config)
    assert window_hint(transformers.LlamaConfig()) == ""


@pytest.mark.parametrize("kind", ["Roberta", "Camembert", "XLMRoberta", "RobertaPreLayerNorm", "Data2VecText"])
@pytest.mark.parametrize("padding", [0, 1, 5])
def test_positions_counted_from_behind_the_padding(kind: str, padding: int) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=40, max_position_embeddings=24, pad_token_id=padding, is_decoder=True, **sizes
    )
    window = context_window(config)
    assert window == 24 - padding - 1
    module = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    module(input_ids=torch.full((1, window), 30))
    with pytest.raises((IndexError, RuntimeError)):
        module(input_ids=torch.full((1, window + 1), 30))
