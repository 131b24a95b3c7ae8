"""What a GGUF file states is in the model made from it, or the file is refused by name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader, quants

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model, load_tokenizer
from lm_audit.models.files.gguf.file import converted_folder, tokenizer_of
from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.kept import check_every_key
from lm_audit.models.files.gguf.pre_tokenizer import pre_tokenizer
from lm_audit.models.generation.stopping import end_ids
from tests.models.files.small_gguf import CONTEXT, SHAPE, llama3_factors, random_llama, write_gguf
from tests.models.pretrained import pretrained_tokenizer
from tests.models.scoring.small_models import VOCABULARY

IDS = torch.arange(3, 50)[None]
THETA = {"rope_theta": 10000.0}


def rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, **THETA, **more}}


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def assert_same(path: Path, module: Any) -> None:
    model = load_model(path, device="cpu")
    with torch.no_grad():
        torch.testing.assert_close(model.module(IDS).logits, module(IDS).logits, rtol=1e-4, atol=1e-4)


def test_a_plain_file(tmp_path: Path, own_cache: Path) -> None:
    module = random_llama()
    assert_same(write_gguf(tmp_path / "plain.gguf", module), module)


def test_biases(tmp_path: Path, own_cache: Path) -> None:
    module = random_llama(attention_bias=True, mlp_bias=True)
    assert_same(write_gguf(tmp_path / "biased.gguf", module), module)


def test_biases_of_queries_keys_and_values_alone(tmp_path: Path, own_cache: Path) -> None:
    module = random_llama(attention_bias=True)
    with torch.no_grad():
        for layer in module.model.layers:
            layer.self_attn.o_proj.bias.zero_()
    assert_same(write_gguf(tmp_path / "qkv.gguf", module, without="o_proj.bias"), module)


def test_rope_freqs(tmp_path: Path, own_cache: Path) -> None:
    module = random_llama(**rope("llama3", **LLAMA3))
    factors = llama3_factors(8, 10000.0, 8.0, 1.0, 4.0, 16)
    assert_same(write_gguf(tmp_path / "llama3.gguf", module, tensors={"rope_freqs.weight": factors}), module)


@pytest.mark.parametrize("attention", [None, 1.25])
def test_rope_factors_of_longrope(tmp_path: Path, own_cache: Path, attention: float | None) -> None:
    """Short factors within the original context, long ones beyond it; the attention factor stated or by the rule."""
    short, long = [1.0, 1.5, 2.0, 2.5], [1.0, 3.0, 5.0, 7.0]
    given = {} if attention is None else {"attention_factor": attention}
    longrope = {"short_factor": short, "long_factor": long, "original_max_position_embeddings": 16, "factor": 4.0}
    module = random_llama(**rope("longrope", **longrope, **given))
    path = write_gguf(
        tmp_path / "longrope.gguf",
        module,
        more={
            "llama.rope.scaling.type": "longrope",
            "llama.rope.scaling.original_context_length": 16,
            **({} if attention is None else {"llama.rope.scaling.attn_factor": attention}),
        },
        tensors={
            "rope_factors_short.weight": np.array(short, dtype=np.float32),
            "rope_factors_long.weight": np.array(long, dtype=np.float32),
        },
    )
    model = load_model(path, device="cpu")
    for ids in (IDS[:, :12], IDS[:, :30]):
        with torch.no_grad():
            torch.testing.assert_close(model.module(ids).logits, module(ids).logits, rtol=1e-4, atol=1e-4)


def test_half_of_the_factors_of_longrope_is_refused(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(
        tmp_path / "half.gguf",
        random_llama(),
        more={"llama.rope.scaling.type": "longrope", "llama.rope.scaling.original_context_length": 16},
        tensors={"rope_factors_long.weight": np.ones(4, dtype=np.float32)},
    )
    with pytest.raises(ModelError, match=r"half\.gguf.*rope_factors_short"):
        load_model(path, device="cpu")


@pytest.mark.parametrize(
    ("settings", "stated"),
    [
        (rope("linear", factor=4.0), {"type": "linear", "factor": 4.0}),
        (
            rope("yarn", factor=4.0, original_max_position_embeddings=16),
            {"type": "yarn", "factor": 4.0, "original_context_length": 16},
        ),
        (
            rope("yarn", factor=2.0, original_max_position_embeddings=32, attention_factor=1.5),
            {
                "type": "yarn",
                "factor": 2.0,
                "original_context_length": 32,
                "attn_factor": 1.5 / (0.1 * float(np.log(2.0)) + 1.0),
            },
        ),
        ({}, {"type": "none"}),
        ({}, {"type": "none", "factor": 4.0}),
        (rope("linear", factor=4.0), {"factor": 4.0}),
    ],
)
def test_rotary_scaling(tmp_path: Path, own_cache: Path, settings: dict[str, Any], stated: dict[str, Any]) -> None:
    module = random_llama(**settings)
    more = {f"llama.rope.scaling.{key}": value for key, value in stated.items()}

    assert_same(write_gguf(tmp_path / "scaled.gguf", module, more=more), module)


@pytest.mark.parametrize(("window", "more"), [(8, 8), (None, None), (None, 0), (100, 100)])
def test_one_window_for_all_layers(tmp_path: Path, own_cache: Path, window: int | None, more: int | None) -> None:
    """Phi-3 of 4,096 tokens has one of 2,047."""
    from transformers import Phi3Config, Phi3ForCausalLM

    settings: dict[str, Any] = {
        **{**SHAPE, "num_hidden_layers": 2, "vocab_size": VOCABULARY, "initializer_range": 0.3},
        **{"max_position_embeddings": CONTEXT, "original_max_position_embeddings": CONTEXT},
        **{"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 1, "sliding_window": window},
    }
    config: Any = Phi3Config(**settings)
    config.head_dim = 8
    module: Any = Phi3ForCausalLM(config)
    module.train(False)
    stated = {"tokenizer.ggml.padding_token_id": 0}
    if more is not None:
        stated["phi3.attention.sliding_window"] = more

    assert_same(write_gguf(tmp_path / "phi.gguf", module, more=stated, architecture="phi3"), module)
    assert load_model(tmp_path / "phi.gguf", device="cpu").module.config.sliding_window == window


@pytest.mark.parametrize(
    ("more", "tensors", "says"),
    [
        ({"llama.rope.scaling.type": "spiral", "llama.rope.scaling.factor": 2.0}, {}, "scales rotary positions by"),
        ({"llama.rope.scaling.attn_factor": 0.5}, {}, r"cannot keep: llama\.rope\.scaling\.attn_factor = 0\.5"),
        (
            {
                "llama.rope.scaling.type": "linear",
                "llama.rope.scaling.factor": 2.0,
                "llama.rope.scaling.attn_factor": 2.0,
            },
            *({}, r"cannot keep: llama\.rope\.scaling\.attn_factor = 2\.0"),
        ),
        ({"llama.logit_scale": 0.5}, {}, r"cannot keep: llama\.logit_scale = 0\.5"),
        ({"llama.attention.sliding_window": 16}, {}, "sliding_window"),
        ({}, {"blk.0.attn_q_norm.weight": np.ones(8, dtype=np.float32)}, "cannot keep: blk.0.attn_q_norm.weight"),
        ({}, {"blk.0.attn_sub_norm.weight": np.ones(8, dtype=np.float32)}, "cannot keep: blk.0.attn_sub_norm"),
    ],
)
def test_what_cannot_be_kept(
    tmp_path: Path, own_cache: Path, more: dict[str, Any], tensors: dict[str, np.ndarray], says: str
) -> None:
    path = write_gguf(tmp_path / "odd.gguf", random_llama(), more=more, tensors=tensors)

    with pytest.raises(ModelError, match=rf"odd\.gguf.*{says}"):
        load_model(path, device="cpu")


@pytest.mark.parametrize(
    ("architecture", "more", "says"),
    [
        ("starcoder2", {}, "rope.freq_base = 20000.0 (it takes 10000.0)"),
        ("stablelm", {"rope.freq_base": 10000.0}, "rope.dimension_count = 8 (it takes 2)"),
        ("stablelm", {"use_parallel_residual": True}, "use_parallel_residual = True (it takes False)"),
        ("phi3", {"rope.dimension_count": 6}, "rope.dimension_count = 6 (it takes 8)"),
    ],
)
def test_numbers_that_a_conversion_passes_over(
    tmp_path: Path, own_cache: Path, architecture: str, more: dict[str, Any], says: str
) -> None:
    given = {f"{architecture}.{key}": value for key, value in more.items()}
    module = random_llama(**{"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}})
    path = write_gguf(tmp_path / "odd.gguf", module, more=given, architecture=architecture)

    with pytest.raises(ModelError, match=rf"odd\.gguf.*cannot keep: .*{re.escape(says)}"):
        load_model(path, device="cpu")


@pytest.mark.parametrize(
    ("stated", "spelt"),
    [
        ({}, ["<s>", "▁ab"]),
        ({"add_space_prefix": False}, ["<s>", "ab"]),
        ({"add_bos_token": False}, ["▁ab"]),
        ({"add_eos_token": True}, ["<s>", "▁ab", "</s>"]),
    ],
)
def test_what_frames_a_text_of_sentencepiece(
    tmp_path: Path, own_cache: Path, stated: dict[str, bool], spelt: list[str]
) -> None:
    more = {f"tokenizer.ggml.{key}": value for key, value in stated.items()}
    path = write_gguf(tmp_path / "pieces.gguf", random_llama(), more=more, sentencepiece=True)

    tokenizer = load_tokenizer(path)

    ids = tokenizer("ab").input_ids
    assert tokenizer.convert_ids_to_tokens(ids) == spelt
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab"


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_white_space_that_pieces_put_before_a_text(tmp_path: Path, own_cache: Path, architecture: str) -> None:
    """As llama.cpp's own tokenizer does: before one that begins with white space too, and behind a special token."""
    path = write_gguf(tmp_path / "pieces.gguf", random_llama(), sentencepiece=True, architecture=architecture)

    tokenizer = load_tokenizer(path)

    for text, spelt in {"  ab": ["▁", "▁", "▁ab"], "ab</s>a b": ["▁ab", "</s>", "▁a", "▁", "b"], "": []}.items():
        assert tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) == ["<s>", *spelt]
    assert tokenizer.decode(tokenizer("  ab", add_special_tokens=False).input_ids) == "  ab"


def test_every_stated_end_of_a_turn_ends_a_continuation(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(tmp_path / "turns.gguf", random_llama(), more={"tokenizer.ggml.eot_token_id": 5})

    assert end_ids(load_model(path, device="cpu")) == {1, 5}


def test_a_file_that_lacks_a_tensor(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(tmp_path / "torn.gguf", random_llama(), without="layers.1.mlp.up_proj")

    with pytest.raises(ModelError, match=r"torn\.gguf.*missing: model\.layers\.1\.mlp\.up_proj\.weight"):
        load_model(path, device="cpu")


def test_an_unknown_way_to_split_is_refused_before_torch(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "new.gguf", random_llama(), pre="splitter-2031")

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=r"new\.gguf: tokenizer\.ggml\.pre is 'splitter-2031'"):
            refuse(path)


TEXT = "It's 12345, DON'T\n\n  x2 fooBar"
PIECES = {
    "gpt-2": ["It", "'s", " 12345", ",", " DON", "'", "T", "\n\n ", " x", "2", " fooBar"],
    "smollm": ["It", "'s", " ", "1", "2", "3", "4", "5", ",", " DON", "'", "T", "\n\n ", " x", "2", " fooBar"],
    "llama-bpe": ["It", "'s", " ", "123", "45", ",", " DON", "'T", "\n\n", " ", " x", "2", " fooBar"],
    "qwen2": ["It", "'s", " ", "1", "2", "3", "4", "5", ",", " DON", "'T", "\n\n", " ", " x", "2", " fooBar"],
    "bailingmoe": ["It", "'s", " ", "1", "2", "3", "4", "5", ",", " DON", "'T", "\n\n", " ", " x", "2", " fooBar"],
    "superbpe": ["It's ", "12", "345", ", DON'T\n\n  x", "2", " fooBar"],
    "gpt-4o": ["It's", " ", "123", "45", ",", " DON'T", "\n\n", " ", " x", "2", " foo", "Bar"],
    "kimi-k2": ["It's", " ", "123", "45", ",", " DON'T", "\n\n", " ", " x", "2", " foo", "Bar"],
    "deepseek-coder": [
        "It",
        "'",
        "s",
        " ",
        "1",
        "2",
        "3",
        "4",
        "5",
        ",",
        " DON",
        "'",
        "T",
        "\n",
        "\n",
        " ",
        " x",
        "2",
        " fooBar",
    ],
}


@pytest.mark.parametrize("name", PIECES)
def test_how_text_is_split(name: str) -> None:
    pieces = [TEXT[begin:end] for _, (begin, end) in pre_tokenizer(name).pre_tokenize_str(TEXT)]

    assert pieces == PIECES[name]


def test_chinese_words_are_pieces_by_themselves() -> None:
    """By the expression of Kimi's own tokenizer."""
    text = "iPhone是2024年的 产品,カメラ/x!\n"
    pieces = [text[begin:end] for _, (begin, end) in pre_tokenizer("kimi-k2").pre_tokenize_str(text)]

    assert pieces == ["i", "Phone", "是", "202", "4", "年的", " ", "产品", ",カメラ", "/x", "!\n"]


@pytest.mark.parametrize(
    ("pre", "more", "begins"),
    [
        ("gpt-2", {}, False),
        ("llama-bpe", {}, True),
        ("llama-bpe", {"tokenizer.ggml.add_bos_token": False}, False),
        ("gpt-2", {"tokenizer.ggml.add_bos_token": True}, True),
    ],
)
def test_bos_as_the_file_says(tmp_path: Path, own_cache: Path, pre: str, more: dict[str, Any], begins: bool) -> None:
    path = write_gguf(tmp_path / "bos.gguf", random_llama(), pre=pre, more=more)

    tokenizer = load_model(path, device="cpu").tokenizer

    assert (tokenizer("door").input_ids[:1] == [0]) == begins


@pytest.mark.parametrize(
    "settings", [{"pre": "llama-bpe"}, {"sentencepiece": True}, {"architecture": "qwen2", "pre": "qwen2"}]
)
def test_the_tokenizer_alone_needs_no_weights(
    tmp_path: Path, own_cache: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"tokenizer.chat_template": "{{ messages }}", "tokenizer.ggml.add_bos_token": True}
    path = write_gguf(tmp_path / "any.gguf", random_llama(), more=more, **settings)
    whole = converted_folder(path)
    monkeypatch.setenv("LM_AUDIT_CACHE", str(tmp_path / "other"))

    alone = load_tokenizer(path)

    assert not list((tmp_path / "other").rglob("*.safetensors"))
    names = {file.name for file in tokenizer_of(path).iterdir()}
    assert names and {name: (tokenizer_of(path) / name).read_bytes() for name in names} == {
        name: (whole / name).read_bytes() for name in names
    }
    again = load_model(path, device="cpu").tokenizer
    assert tokenizer_of(path) == converted_folder(path)
    assert alone("a b", return_offsets_mapping=True) == again("a b", return_offsets_mapping=True)


WHOLE = {"<｜User｜>": 3, "<a b>": 3, "<東>": 4, "    ": 4, "<plain>": 4, "<｜begin▁of▁sentence｜>": 3}


def test_tokens_that_a_byte_level_file_marks_are_one_piece_of_a_text(tmp_path: Path, own_cache: Path) -> None:
    """As llama.cpp's own tokenizer reads these texts; DeepSeek's files have such, also to begin a text."""
    first = VOCABULARY - len(WHOLE)
    bos = VOCABULARY - 1
    more = {"tokenizer.ggml.add_bos_token": True, "tokenizer.chat_template": "{{ messages }}"}
    path = write_gguf(tmp_path / "whole.gguf", random_llama(), whole=WHOLE, bos=bos, more=more)

    tokenizer = load_model(path, device="cpu").tokenizer

    for number, (text, kind) in enumerate(WHOLE.items(), first):
        ids = tokenizer(f"x{text}y").input_ids
        assert ids == [bos, *tokenizer("x").input_ids[1:], number, *tokenizer("y").input_ids[1:]]
        assert tokenizer.decode(ids[1:], skip_special_tokens=True) == ("xy" if kind == 3 else f"x{text}y")
    assert tokenizer.bos_token_id == bos and tokenizer.eos_token_id == 1
    assert tokenizer("        y").input_ids[1:3] == [first + 3] * 2
    assert pretrained_tokenizer(tokenizer).chat_template == "{{ messages }}"


@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
def test_text_is_split_as_the_file_says_whatever_the_class_of_its_architecture(
    tmp_path: Path, own_cache: Path, architecture: str
) -> None:
    """Qwen's would keep line breaks with the full stop before them."""
    path = write_gguf(tmp_path / "split.gguf", random_llama(), pre="gpt-2", architecture=architecture)

    tokenizer = load_tokenizer(path)

    assert tokenizer.convert_ids_to_tokens(tokenizer("box.\n\n").input_ids)[-3:] == [".", "Ċ", "Ċ"]


def cut(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


@pytest.mark.parametrize(
    "spoil",
    [
        cut,
        lambda content: content[:40],
        lambda content: content[:4] + b"\x09\0\0\0" + content[8:],
        lambda content: content[:8] + b"\xff" * 8 + content[16:],
        lambda content: content[:16] + b"\xff" * 8 + content[24:],
        lambda content: content.replace(b"general.architecture", b"general.architectura"),
    ],
    ids=["cut", "cut in the header", "version", "tensor count", "metadata count", "no architecture"],
)
def test_damaged_files(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = write_gguf(tmp_path / "damaged.gguf", random_llama())
    path.write_bytes(spoil(path.read_bytes()))

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=r"damaged\.gguf"):
            refuse(path)


@pytest.mark.parametrize("lost", ["layers.0.self_attn.q_proj.bias", "layers.1.self_attn.v_proj.bias"])
def test_a_bias_that_one_layer_lacks_is_lost_not_zero(tmp_path: Path, own_cache: Path, lost: str) -> None:
    path = write_gguf(tmp_path / "lost.gguf", random_llama(attention_bias=True), without=lost)
    layer, part = lost.split(".")[1], lost.split(".")[3][0]
    with pytest.raises(ModelError, match=rf"lost\.gguf lacks blk\.{layer}\.attn_{part}\.bias"):
        load_model(path, device="cpu")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.causal", False),
        ("rope.scaling.factor", -2.0),
        ("rope.scaling.factor", float("nan")),
        ("rope.scaling.yarn_ext_factor", 0.0),
    ],
)
def test_a_setting_that_no_causal_model_can_have_is_refused(
    tmp_path: Path, own_cache: Path, key: str, value: bool | float
) -> None:
    path = write_gguf(tmp_path / "odd.gguf", random_llama(), more={f"llama.{key}": value})
    with pytest.raises(ModelError, match=r"odd\.gguf (states|scales)"):
        load_model(path, device="cpu")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("no_such_setting", 1),
        ("attention.new_scale", 0.5),
        ("rope.scaling.alpha", 1000.0),
        ("attention.temperature_length", 8192),
        ("interleave_moe_layer_step", 2),
        ("expert_gating_func", 2),
        ("attention.sliding_window", 32),
        ("rope.freq_base_swa", 500.0),
        ("swin_norm", True),
        ("classifier", "labels"),
    ],
)
def test_a_setting_that_nobody_knows_is_refused(tmp_path: Path, own_cache: Path, key: str, value: Any) -> None:
    """What is not known to be harmless counts as a part of the model."""
    path = write_gguf(tmp_path / "odd.gguf", random_llama(), more={f"llama.{key}": value})
    with pytest.raises(ModelError, match=rf"odd\.gguf states what the conversion cannot keep: llama\.{key} = "):
        load_model(path, device="cpu")


def test_settings_that_change_nothing_and_those_of_others(tmp_path: Path, own_cache: Path) -> None:
    """As files of llama.cpp have them: kinds of layout and pooling, scales of one, windows as long as the context."""
    more = {
        "llama.tensor_data_layout": "Meta AI original pth",
        "llama.pooling_type": 3,
        "llama.logit_scale": 1.0,
        "llama.attention.causal": True,
        "llama.attention.sliding_window": 64,
        "llama.rope.scaling.finetuned": False,
        "llama.rope.scaling.original_context_length": 64,
        "llama.expert_gating_func": 1,
        "llama.vocab_size": random_llama().config.vocab_size,
        "general.quantization_version": 2,
        "quantize.imatrix.entries_count": 128,
        "mistral.attention.sliding_window": 16,
    }
    module = random_llama()
    assert_same(write_gguf(tmp_path / "plain.gguf", module, more=more), module)


@pytest.mark.parametrize(
    ("key", "value", "held"),
    [
        ("final_logit_softcapping", 30.0, {"final_logit_softcapping": 30.0}),
        ("final_logit_softcapping", 30.0, {"final_logit_softcapping": 20.0}),
        ("attention.sliding_window", 16, {"sliding_window": 16}),
        ("expert_weights_norm", True, {"norm_topk_prob": False}),
        ("expert_gating_func", 2, {"scoring_func": "sigmoid"}),
        ("expert_gating_func", 2, {"scoring_func": 2}),
        ("attention.sliding_window_pattern", 2, {"layer_types": ["sliding_attention", "full_attention"] * 2}),
        ("attention.sliding_window_pattern", [1, 0], {"layer_types": ["sliding_attention", "full_attention"]}),
        ("full_attention_interval", 2, {"layer_types": ["linear_attention", "full_attention"] * 2}),
        ("rope.freq_base_swa", 10000.0, {"rope_parameters": {"sliding_attention": {"rope_theta": 10000.0}}}),
    ],
)
def test_a_setting_is_held_where_the_configuration_has_its_value(key: str, value: Any, held: dict[str, Any]) -> None:
    metadata = {"general.architecture": "gemma2", "gemma2.context_length": 64, f"gemma2.{key}": value}
    good = next(iter(held.values())) != 20.0 and held != {"norm_topk_prob": False}
    with contextlib.nullcontext() if good else pytest.raises(ModelError, match=rf"gemma2\.{key}"):
        check_every_key(SimpleNamespace(**held), GgufHeader(metadata, {}), Path("a.gguf"))


def test_factors_of_another_number(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(
        tmp_path / "three.gguf", random_llama(), tensors={"rope_freqs.weight": np.ones(3, dtype=np.float32)}
    )
    with pytest.raises(ModelError, match=r"rope_freqs\.weight has 3 factors, and 4 pairs of dimensions are rotated"):
        load_model(path, device="cpu")


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf")])
def test_factors_that_divide_by_nothing(tmp_path: Path, own_cache: Path, value: float) -> None:
    tensors = {"rope_freqs.weight": np.full(4, value, dtype=np.float32)}
    path = write_gguf(tmp_path / "odd.gguf", random_llama(), tensors=tensors)
    with pytest.raises(ModelError, match=r"rope_freqs\.weight holds"):
        load_model(path, device="cpu")


@pytest.mark.parametrize("setter", ["add_context_length", "add_layer_norm_rms_eps"])
def test_a_file_without_what_every_file_states(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, setter: str
) -> None:
    monkeypatch.setattr(f"gguf.GGUFWriter.{setter}", lambda *_: None)
    path = write_gguf(tmp_path / "bare.gguf", random_llama())
    with pytest.raises(ModelError, match=r"bare\.gguf does not state llama\."):
        load_model(path, device="cpu")


@pytest.mark.parametrize("key", ["attention.key_length", "attention.value_length"])
@pytest.mark.parametrize("size", [3, 64, 0])
def test_heads_of_another_size_than_stated(tmp_path: Path, key: str, size: int) -> None:
    path = write_gguf(tmp_path / "heads.gguf", random_llama(), more={f"llama.{key}": size})
    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=rf"heads\.gguf states llama\.{key} = {size}"):
            refuse(path)


def test_a_size_of_heads_that_the_conversion_would_pass_over(tmp_path: Path, own_cache: Path) -> None:
    module = random_llama()
    size = module.config.head_dim
    fits = write_gguf(tmp_path / "fits.gguf", module, more={"llama.attention.key_length": size})
    assert_same(fits, module)
    half = write_gguf(tmp_path / "half.gguf", module, more={"llama.attention.key_length": size // 2})
    with pytest.raises(ModelError, match=rf"cannot keep: .*dimension_count = {size} \(it takes {size // 2}\)"):
        load_model(half, device="cpu")


def quantisable() -> list[GGMLQuantizationType]:
    """The types that gguf-py can write."""
    found = []
    for kind in GGMLQuantizationType:
        with contextlib.suppress(NotImplementedError):
            quants.quantize(np.zeros((1, 256), dtype=np.float32), kind)
            found.append(kind)
    return found


STORED = {
    "model.embed_tokens.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
    "model.layers.0.mlp.down_proj.weight": "blk.0.ffn_down.weight",
    "model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v.weight",
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind.name in ("Q4_0", "Q8_0") else pytest.mark.slow, id=kind.name)
        for kind in quantisable()
    ],
)
def test_quantised_tensors_are_what_gguf_py_makes_of_them(
    tmp_path: Path, own_cache: Path, kind: GGMLQuantizationType
) -> None:
    module = random_llama(hidden_size=256, intermediate_size=256, num_hidden_layers=1)
    path = write_gguf(tmp_path / "small.gguf", module, kind=kind)
    wanted = {t.name: quants.dequantize(t.data, t.tensor_type) for t in GGUFReader(path).tensors}
    found = load_model(path, device="cpu").module.state_dict()
    assert all(np.array_equal(found[name].numpy(), wanted[stored]) for name, stored in STORED.items())


@pytest.mark.parametrize("without", ["lm_head", "\0"])
def test_tied_output(tmp_path: Path, own_cache: Path, without: str) -> None:
    module = random_llama(tie_word_embeddings=True)
    assert_same(write_gguf(tmp_path / "tied.gguf", module, without=without), module)
