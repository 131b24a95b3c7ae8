"""Small GGUF files of random Llamas, written as llama.cpp's converter writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.models.scoring.small_models import VOCABULARY, small_tokenizer
from tests.models.small_models import small_llama

SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
CONTEXT = 64

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
}


def random_llama(**settings: Any) -> Any:
    """A Llama of the shape above whose biases, if it has any, are not zero."""
    module = small_llama(vocabulary=VOCABULARY, context=CONTEXT, initializer_range=0.3, **{**SHAPE, **settings})
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def llama3_factors(head: int, theta: float, factor: float, low: float, high: float, original: int) -> np.ndarray:
    """Divisors of the rotary frequencies by Llama 3's scaling, as they lie in ``rope_freqs.weight``."""
    factors = []
    for number in range(0, head, 2):
        wave = 2 * math.pi * theta ** (number / head)
        if wave < original / high:
            factors.append(1.0)
        elif wave > original / low:
            factors.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


def write_gguf(
    path: Path,
    module: Any,
    *,
    pre: str | None = "gpt-2",
    more: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    without: str = "\0",
    kind: Any = None,
    architecture: str = "llama",
    sentencepiece: bool = False,
    whole: Mapping[str, int] | None = None,
    bos: int = 0,
) -> Path:
    """``module`` as a GGUF file, with further metadata and tensors; matrices as ``kind``.

    Of another ``architecture`` it is one by name only; ``sentencepiece`` gives it other tokens. ``whole``: the last
    tokens of a byte-level vocabulary and their types; ``bos``: which token begins a text.
    """
    from gguf import GGUFWriter, quants

    config = module.config
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if sentencepiece:
        add_sentencepiece(writer)
    else:
        add_tokenizer(writer, pre, whole, bos)
    for key, value in (more or {}).items():
        add: dict[type, Any] = {
            bool: writer.add_bool,
            int: writer.add_uint32,
            float: writer.add_float32,
            str: writer.add_string,
        }
        add[type(value)](key, value)
    for name, value in module.state_dict().items():
        if without not in name:
            stored = _as_stored(name, value.float().numpy(), config)
            if kind is None or stored.ndim < 2:
                writer.add_tensor(_gguf_name(name), stored)
            else:
                writer.add_tensor(_gguf_name(name), quants.quantize(stored, kind), raw_dtype=kind)
    for name, value in (tensors or {}).items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tokenizer(writer: Any, pre: str | None, whole: Mapping[str, int] | None = None, bos: int = 0) -> None:
    """A small byte-level BPE, whose last tokens may be others: their text and type."""
    import json

    tokenizer = small_tokenizer()
    rules = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = [tokenizer.convert_ids_to_tokens(number) for number in range(VOCABULARY)]
    given = dict(whole or {})
    first = VOCABULARY - len(given)
    gone = set(tokens[first:])
    merges = [pair for pair in rules["merges"] if not {*pair, "".join(pair)} & gone]
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list([*tokens[:first], *given])
    writer.add_token_types([3, 3, *[1] * (first - 2), *given.values()])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(bos)
    writer.add_eos_token_id(1)


def add_sentencepiece(writer: Any) -> None:
    """A few pieces and all bytes."""
    tokens = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "▁ab", "ab"]
    tokens += [f"x{number}" for number in range(VOCABULARY - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(number) for number in range(VOCABULARY)])
    writer.add_token_types([3, 3, 2, *[6] * 256, *[1] * (VOCABULARY - 259)])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)


def _gguf_name(name: str) -> str:
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        number, part = stem.removeprefix("model.layers.").split(".", 1)
        return f"blk.{number}.{_NAMES[part]}.{kind}"
    return f"{_NAMES[stem]}.{kind}"


def _as_stored(name: str, value: np.ndarray, config: Any) -> np.ndarray:
    """llama.cpp interleaves the halves of each head's rotary dimensions."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    count = next((heads[part] for part in heads if part in name), None)
    if count is None:
        return np.ascontiguousarray(value)
    halves = value.reshape(count, 2, value.shape[0] // count // 2, *value.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(value.shape))
