"""Small random models of every kind of causal architecture that transformers builds in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_BASE: dict[str, Any] = {
    "vocab_size": 272,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.15,
}
_NO_HEADS = ("num_attention_heads", "num_key_value_heads")
_OLD = ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings", "num_key_value_heads")
_OWN_NAMES = (*_OLD, "intermediate_size")
_WIDTH = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128}
_MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
_MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 16}
_LONG = {"rope_theta": 10000.0, "original_max_position_embeddings": 32}


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


# Configuration class, what it sets beside the shape above, what of that shape it does not know.
ARCHITECTURES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "llama": ("LlamaConfig", {}, ()),
    "llama_bias": ("LlamaConfig", {"attention_bias": True, "mlp_bias": True}, ()),
    "llama3": (
        "LlamaConfig",
        _rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32),
        (),
    ),
    "llama_linear": ("LlamaConfig", _rope("linear", factor=4.0), ()),
    "llama_yarn": ("LlamaConfig", _rope("yarn", factor=4.0, original_max_position_embeddings=32), ()),
    "llama_dynamic": ("LlamaConfig", {"max_position_embeddings": 64, **_rope("dynamic", factor=4.0)}, ()),
    "qwen2_swa": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, ()),
    "qwen3": ("Qwen3Config", {"head_dim": 16}, ()),
    "mistral_swa": ("MistralConfig", {"sliding_window": 8}, ()),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}, ()),
    "gemma3_text": (
        "Gemma3TextConfig",
        {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16, "layer_types": _MIXED},
        (),
    ),
    "gpt2": ("GPT2Config", _WIDTH, _OWN_NAMES),
    "gpt_neox": ("GPTNeoXConfig", {}, ("num_key_value_heads",)),
    "gptj": ("GPTJConfig", {**_WIDTH, "rotary_dim": 8}, _OWN_NAMES),
    "gpt_neo": (
        "GPTNeoConfig",
        {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4, "window_size": 8},
        ("num_attention_heads", "num_hidden_layers", "num_key_value_heads"),
    ),
    "phi": ("PhiConfig", {}, ()),
    "phi3_longrope": (
        "Phi3Config",
        {
            "sliding_window": None,
            "original_max_position_embeddings": 32,
            **_rope("longrope", short_factor=[1.0] * 8, long_factor=[4.0] * 8, **_LONG),
        },
        (),
    ),
    "olmo2": ("Olmo2Config", {}, ()),
    "olmo3": ("Olmo3Config", {"sliding_window": 8}, ()),
    "falcon": (
        "FalconConfig",
        {"ffn_hidden_size": 128, "num_kv_heads": 2, "new_decoder_architecture": True},
        ("intermediate_size", "num_key_value_heads"),
    ),
    "falcon_alibi": (
        "FalconConfig",
        {
            "ffn_hidden_size": 128,
            "alibi": True,
            "multi_query": True,
            "new_decoder_architecture": False,
            "parallel_attn": False,
        },
        ("intermediate_size", "num_key_value_heads"),
    ),
    "opt": ("OPTConfig", {"ffn_dim": 128, "word_embed_proj_dim": 64}, ("num_key_value_heads", "intermediate_size")),
    "bloom": ("BloomConfig", {"n_head": 4, "n_layer": 3}, (*_OLD[1:], "intermediate_size")),
    "mpt": (
        "MptConfig",
        {"d_model": 64, "n_heads": 4, "n_layers": 3, "max_seq_len": 128, "expansion_ratio": 2},
        _OWN_NAMES,
    ),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}, ()),
    "qwen3_moe": ("Qwen3MoeConfig", _MOE, ()),
    "mamba": ("MambaConfig", {"state_size": 8}, (*_NO_HEADS, "intermediate_size", "max_position_embeddings")),
    "jamba": (
        "JambaConfig",
        {
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "use_mamba_kernels": False,
            "mamba_d_state": 8,
        },
        (),
    ),
    "lfm2": ("Lfm2Config", {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 16}, ()),
    "qwen3_next": (
        "Qwen3NextConfig",
        {
            "head_dim": 16,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
        },
        (),
    ),
    "minimax": (
        "MiniMaxConfig",
        {
            "head_dim": 16,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "block_size": 8,
        },
        (),
    ),
    "recurrent_gemma": (
        "RecurrentGemmaConfig",
        {
            "lru_width": 64,
            "attention_window_size": 8,
            "block_types": ["recurrent", "recurrent", "attention"],
            "head_dim": 16,
        },
        (),
    ),
    "rwkv": (
        "RwkvConfig",
        {"attention_hidden_size": 64, "context_length": 128},
        (*_NO_HEADS, "max_position_embeddings"),
    ),
    "granite": (
        "GraniteConfig",
        {"residual_multiplier": 0.22, "embedding_multiplier": 12.0, "logits_scaling": 8.0},
        (),
    ),
    "cohere2": ("Cohere2Config", {"sliding_window": 8}, ()),
    "smollm3": ("SmolLM3Config", {"no_rope_layers": [1, 1, 0]}, ()),
    "gpt_oss": (
        "GptOssConfig",
        {
            "head_dim": 16,
            "sliding_window": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "layer_types": _MIXED,
        },
        (),
    ),
    "deepseek_v3": (
        "DeepseekV3Config",
        {
            "num_key_value_heads": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 16,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "n_group": 1,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
        },
        (),
    ),
    "llama4_text": (
        "Llama4TextConfig",
        {
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "head_dim": 16,
            "attention_chunk_size": 8,
            "intermediate_size_mlp": 128,
            "no_rope_layers": [1, 1, 0],
            "moe_layers": [1],
        },
        (),
    ),
    "exaone4": (
        "Exaone4Config",
        {"sliding_window": 8, "sliding_window_pattern": None, "layer_types": _MIXED},
        (),
    ),
    "nemotron": ("NemotronConfig", {}, ()),
    "gpt_bigcode": ("GPTBigCodeConfig", _WIDTH, _OWN_NAMES),
    "xglm": ("XGLMConfig", {"d_model": 64, "ffn_dim": 128, "num_layers": 2, "attention_heads": 4}, ()),
    "diffllama": ("DiffLlamaConfig", {}, ()),
}

QUICK = ("llama", "llama_dynamic", "mistral_swa", "gpt_neo", "opt", "bloom", "mamba", "lfm2", "minimax", "llama4_text")
"""One of each way in which positions, windows, states and bodies differ."""


@cache
def architecture(name: str, seed: int = 0, **changes: Any) -> Any:
    """The random model of that name, evaluated, float32; small norms and biases are spread so that mistakes show."""
    import torch
    import transformers

    config_class, settings, unknown = ARCHITECTURES[name]
    shape = {key: value for key, value in _BASE.items() if key not in unknown}
    config = getattr(transformers, config_class)(**{**shape, **settings, **changes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        build: Callable[..., Any] = transformers.AutoModelForCausalLM.from_config
        module = build(config)
        with torch.no_grad():
            for parameter_name, parameter in module.named_parameters():
                stateful = "A_log" in parameter_name or "dt" in parameter_name
                if parameter.ndim == 1 and parameter.is_floating_point() and not stateful:
                    parameter.add_(0.2 * torch.randn(parameter.shape))
    return module.float().eval()
