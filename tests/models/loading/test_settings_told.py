"""What a folder states and its model does not take up, or what looks like damage, is told when it loads."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model, load_tokenizer
from lm_audit.models.checks import tokenizer_reads
from lm_audit.models.checks.proofs import Proofs
from lm_audit.models.checks.tokenizer_reads import tell_class
from lm_audit.models.checks.unread_settings import tell_unread
from tests.models.scoring.small_models import small_tokenizer
from tests.models.small_models import edit_json


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be spoilt."""
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


def told(folder: Path) -> list[str]:
    """The warnings with which a folder loads."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        load_model(folder, device="cpu")
    return [str(one.message) for one in heard if not issubclass(one.category, FutureWarning | DeprecationWarning)]


def edit_weights(folder: Path, change: Any) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({name: change(name, value) for name, value in weights.items()}, folder / "model.safetensors")


def test_a_good_folder_tells_nothing(folder: Path) -> None:
    assert told(folder) == []


def test_a_config_may_list_several_ends(folder: Path) -> None:
    """As those of Llama 3.1 and Gemma 3 do; such a folder could not be loaded."""
    edit_json(folder / "config.json", eos_token_id=[2, 1])

    assert told(folder) == []


@pytest.mark.parametrize(
    ("file", "ends", "says"),
    [
        ("generation_config.json", 128009, "end texts at the tokens 128009; its embeddings end at 258"),
        ("generation_config.json", [2, 300, 301], "at the tokens 300, 301; its embeddings end at 258"),
        ("config.json", [2, 5000], "at the tokens 5000"),
        ("config.json", 40, r"end texts at 40 \('.'\), which its tokenizer has for ordinary text"),
        ("generation_config.json", 41, "at 41 .* ordinary text"),
    ],
)
def test_ends_of_another_model(folder: Path, file: str, ends: Any, says: str) -> None:
    path = folder / file
    path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | {"eos_token_id": ends}))

    with pytest.warns(UserWarning, match=says):
        load_model(folder, device="cpu")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sliding_window": 4}, "states sliding_window = 4, which LlamaForCausalLM does not know"),
        ({"logit_scale": 0.1, "final_logit_softcapping": 5.0}, "logit_scale = 0.1, final_logit_softcapping = 5.0"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention = True, which LlamaForCausalLM does not"),
        ({"rms_norm_epsilon": 1e-2, "rms_norm_eps": None}, "'rms_norm_epsilon', .*; rms_norm_eps is not stated"),
        ({"attention_biass": True, "attention_bias": None}, "'attention_biass', .*; attention_bias is not stated"),
    ],
    ids=str,
)
def test_settings_that_the_class_does_not_know(folder: Path, changes: dict[str, Any], says: str) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))

    with pytest.warns(UserWarning, match=says):
        load_model(folder, device="cpu")


@pytest.mark.parametrize(
    "changes",
    [
        {"sliding_window": None, "pretraining_tp": 1, "logit_scale": 1.0, "use_qk_norm": False},
        {"sliding_window": 4096, "use_sliding_window": False},
        {"my_own_note": "made on a Tuesday", "torch_dtype": "float32", "quantization": None},
        {"rms_norm_epsilon": 1e-2},
    ],
    ids=str,
)
def test_settings_that_change_nothing(folder: Path, changes: dict[str, Any]) -> None:
    edit_json(folder / "config.json", **changes)

    assert told(folder) == []


def test_what_is_told_stays_with_the_model(folder: Path) -> None:
    assert load_model(folder, device="cpu").told == ()
    edit_json(folder / "config.json", sliding_window=16)

    with pytest.warns(UserWarning, match="sliding_window"):
        model = load_model(folder, device="cpu")
    assert len(model.told) == 1 and "sliding_window = 16" in model.told[0]


def test_matrices_of_zeros(folder: Path) -> None:
    edit_weights(folder, lambda name, value: value * -0.0 if "k_proj" in name else value)

    with pytest.warns(UserWarning, match=r"nothing but zeros in model\.layers\.0\.self_attn\.k_proj\.weight, .*1"):
        load_model(folder, device="cpu")


def test_fp8_without_its_scales(folder: Path) -> None:
    """transformers would take a scale of 1."""
    edit_weights(folder, lambda name, value: value.to(torch.float8_e4m3fn) if "k_proj" in name else value)
    settings = {"quant_method": "fp8", "weight_block_size": [16, 16], "activation_scheme": "dynamic"}
    edit_json(folder / "config.json", quantization_config=settings)

    with pytest.raises(ModelError, match=r"FP8 without their scales: model\.layers\.0\.self_attn\.k_proj\.weight"):
        check_spec(folder)
    weights = load_file(folder / "model.safetensors")
    scales = {f"{name}_scale_inv": torch.ones(1, 1) for name in weights if "k_proj" in name}
    save_file(weights | scales, folder / "model.safetensors")
    check_spec(folder)


def test_two_pieces_of_text_that_are_one_token(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    first, second = list(vocabulary)[100:102]
    vocabulary[second] = vocabulary[first]
    (folder / "tokenizer.json").write_text(json.dumps(content))

    with pytest.raises(ModelError, match=rf"tokenizer\.json: .* are both the token {vocabulary[first]}"):
        check_spec(folder)


@pytest.mark.parametrize(
    ("number", "says"), [(100, r"100, which is 'a'; it would be read as 259"), (300, "300; .* 259")]
)
def test_an_added_token_that_would_be_read_as_another(folder: Path, number: int, says: str) -> None:
    added = {"content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "special": True}
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"].append(added | {"id": number, "normalized": False})

    (folder / "added_tokens.json").write_text(json.dumps({"<x>": number}))
    with pytest.raises(ModelError, match=rf"added_tokens\.json has '<x>' as the token {says}"):
        load_model(folder, device="cpu")
    (folder / "added_tokens.json").unlink()
    edit_json(folder / "tokenizer_config.json", added_tokens_decoder={str(number): added})
    with pytest.raises(ModelError, match=rf"tokenizer_config\.json has '<x>' as the token {says}"):
        load_model(folder, device="cpu")
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=rf"tokenizer\.json adds '<x>' as the token {says}"):
        check_spec(folder)


def test_an_added_token_that_is_read_as_stated(folder: Path) -> None:
    added = {"content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "special": True}
    (folder / "added_tokens.json").write_text(json.dumps({"<x>": 259, "<eos>": 2}))
    edit_json(folder / "tokenizer_config.json", added_tokens_decoder={"259": added})

    assert told(folder) == []


def test_a_frame_of_another_token(folder: Path) -> None:
    edit_tokenizer(folder, lambda content: content["post_processor"]["special_tokens"]["<bos>"].update(ids=[50]))

    with pytest.raises(ModelError, match=r"post_processor puts the token 50 for '<bos>', which is 1"):
        check_spec(folder)


def test_merges_that_are_left_out_at_random(folder: Path) -> None:
    def drop(content: Any) -> None:
        model, names = content["model"], {256: "ab", 257: "abc"}
        model["vocab"] = {names.get(number, token): number for token, number in model["vocab"].items()}
        model.update(merges=[["a", "b"], ["ab", "c"]], dropout=0.5)

    edit_tokenizer(folder, drop)
    with pytest.warns(UserWarning, match=r"leaves out merges at random.* \(dropout 0\.5 in tokenizer\.json\)"):
        tokenizer = load_tokenizer(folder)

    assert {tuple(tokenizer("abc" * 9, add_special_tokens=False).input_ids) for _ in range(40)} == {(257,) * 9}


@pytest.mark.parametrize(
    "rule",
    [
        *({"stop_strings": ["a"]}, {"suppress_tokens": [5]}, {"no_repeat_ngram_size": 2}, {"forced_eos_token_id": 7}),
        *({"repetition_penalty": 1.05}, {"num_beams": 4}, {"penalty_alpha": 0.6}, {"dola_layers": "low"}),
        {"exponential_decay_length_penalty": [8, 1.1]},
    ],
)
def test_rules_of_generation_that_are_not_followed(folder: Path, rule: dict[str, Any]) -> None:
    edit_json(folder / "generation_config.json", no_repeat_ngram_size=0, guidance_scale=1.0, repetition_penalty=1.0)
    assert told(folder) == []
    edit_json(folder / "generation_config.json", **rule)

    assert any(f"states {next(iter(rule))} = " in one and "not followed" in one for one in told(folder))


def test_a_date_in_every_prompt(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    turns = "{% for m in messages %}{{ m.content }}{% endfor %}"
    path.write_text(f"{{{{ date_string }}}} {{# strftime_now #}} {turns}")
    assert told(folder) == []
    path.write_text(
        "{% if not date_string %}{% set date_string = strftime_now('%d') %}{% endif %}{{ date_string }}" + turns
    )

    (message,) = told(folder)
    assert "writes today's date into every prompt" in message and "--chat-args date_string=... fixes it" in message


@pytest.mark.parametrize(("token", "role"), [("a", "eos_token"), ("a", "pad_token"), ("1", "bos_token")])
def test_a_word_as_special_token(folder: Path, token: str, role: str) -> None:
    edit_json(folder / "tokenizer_config.json", **{role: token})

    assert any(rf"has {token!r} ({role}) among its special tokens" in one for one in told(folder))
    edit_json(folder / "tokenizer_config.json", **{role: "<eos>"}, additional_special_tokens=["h"])
    assert any("has 'h' among its special tokens" in one for one in told(folder))


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        ("gpt_neox", {"rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": True}),
        ("phi", {"partial_rotary_factor": 0.4, "qk_layernorm": False, "rope_theta": 10000.0}),
        (
            "stablelm",
            {"rope_pct": 0.25, "norm_eps": 1e-5, "rotary_scaling_factor": 1.0, "use_parallel_residual": False},
        ),
        ("qwen2", {"sliding_window": 131072, "use_sliding_window": False, "use_mrope": False}),
        ("gemma2", {"hidden_act": "gelu_pytorch_tanh", "sliding_window_size": 4096, "cache_implementation": "hybrid"}),
        ("gemma3_text", {"rope_local_base_freq": 10000, "sliding_window_pattern": 6, "final_logit_softcapping": None}),
        ("gpt2", {"n_ctx": 1024, "summary_type": "cls_index", "task_specific_params": {}}),
        ("gpt_oss", {"experts_per_token": 4, "initial_context_length": 4096, "sliding_window": 128}),
        ("cohere", {"logit_scale": 0.0625, "use_qk_norm": False, "model_max_length": 131072}),
        ("falcon", {"alibi": False, "multi_query": True, "parallel_attn": True, "n_head": 8}),
        ("granite", {"attention_multiplier": 0.0156, "embedding_multiplier": 12.0, "logits_scaling": 8.0}),
        ("opt", {"activation_dropout": 0.0, "prefix": "</s>", "_remove_final_layer_norm": False}),
    ],
)
def test_settings_that_published_models_have(
    kind: str, stated: dict[str, Any], recwarn: pytest.WarningsRecorder
) -> None:
    tell_unread({"model_type": kind, **stated}, without_weights(kind, stated), "config.json")

    assert [str(one.message) for one in recwarn.list if one.category is UserWarning] == []


def without_weights(kind: str, stated: dict[str, Any]) -> Any:
    build: Any = AutoModelForCausalLM.from_config
    with torch.device("meta"):
        return build(AutoConfig.for_model(kind, **stated))


@pytest.mark.parametrize(
    ("kind", "stated"), [("mpt", {"logit_scale": 0.5}), ("deepseek_v2", {"norm_topk_prob": True}), ("mpt", {})]
)
def test_a_setting_that_the_config_has_and_no_code_reads(
    kind: str, stated: dict[str, Any], recwarn: pytest.WarningsRecorder
) -> None:
    """MPT's scale of the logits: probabilities of another temperature, without a word."""
    tell_unread({"model_type": kind, **stated}, without_weights(kind, {"num_hidden_layers": 2}), "config.json")

    heard = [str(one.message) for one in recwarn.list if one.category is UserWarning]
    assert [one.split(" states ")[1].split(",")[0] for one in heard] == [f"{k} = {v}" for k, v in stated.items()]
    assert all("no line of" in one for one in heard)


@pytest.mark.parametrize(
    ("kind", "stated", "says"),
    [
        ("llama", {"partial_rotary_factor": 0.25}, True),
        ("qwen2", {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, True),
        ("llama", {"partial_rotary_factor": 1.0}, False),
        ("glm", {"partial_rotary_factor": 0.25}, False),
        ("gpt2", {"partial_rotary_factor": 0.25}, False),
        ("llama", {"partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, False),
    ],
)
def test_a_share_of_the_heads_that_is_turned_whole(
    kind: str, stated: dict[str, Any], says: bool, recwarn: pytest.WarningsRecorder
) -> None:
    """transformers takes it into the rotary settings of every make; other libraries turn that share."""
    tell_unread({"model_type": kind, **stated}, without_weights(kind, {"num_hidden_layers": 2, **stated}), "c")

    heard = [str(one.message) for one in recwarn.list if "partial_rotary_factor" in str(one.message)]
    assert len(heard) == says and all("no line of" in one for one in heard)


def edit_tokenizer(folder: Path, change: Any) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_letters_that_a_tokenizer_lost(folder: Path) -> None:
    """A byte-level vocabulary without a letter reads every text without it."""
    edit_tokenizer(folder, lambda content: content["model"]["vocab"].pop("q"))

    with pytest.warns(UserWarning, match=r"its tokenizer has no token for 'q', so that texts lose"):
        load_model(folder, device="cpu")


def test_an_empty_vocabulary(folder: Path) -> None:
    edit_tokenizer(folder, lambda content: content["model"].update(vocab={}))

    with pytest.raises(ModelError, match="its vocabulary is empty"):
        load_model(folder, device="cpu")


def test_text_that_is_spelt_otherwise(folder: Path) -> None:
    """Without its decoder a tokenizer gives its own letters for bytes back."""
    edit_tokenizer(folder, lambda content: content.update(decoder=None))

    with pytest.warns(UserWarning, match=r"spells what it read of .* as 'O"):
        load_model(folder, device="cpu")


def test_a_file_is_read_once_for_its_class(
    llama_folder: Path, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it showed is told each time; another file is read anew."""
    from transformers import Qwen2Tokenizer

    assert own_cache
    proofs, sound, read = Proofs(load_model(llama_folder, device="cpu")), tokenizer_reads._read_otherwise, []

    def watched(*given: Any) -> str:
        read.append(given)
        return sound(*given)

    monkeypatch.setattr(tokenizer_reads, "_read_otherwise", watched)
    untyped: Any = small_tokenizer()
    untyped.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    edit_tokenizer(tmp_path, lambda content: content.update(pre_tokenizer=BYTES))
    tokenizer_class: Any = Qwen2Tokenizer
    for times, edited in ((1, False), (1, False), (2, True)):
        if edited:
            edit_tokenizer(tmp_path, lambda content: content["model"].update(fuse_unk=True))
        with pytest.warns(UserWarning, match=r"model m: .*tokenizer\.json reads .*; Qwen2Tokenizer, which"):
            tell_class(tokenizer_class.from_pretrained(tmp_path), tmp_path, "m", proofs)
        assert len(read) == times


def test_a_class_that_splits_text_otherwise_than_its_file(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """transformers takes Qwen's class for each Qwen 2, whatever its tokenizer.json says."""
    from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

    untyped: Any = small_tokenizer()
    untyped.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokenizer_class: Any = PreTrainedTokenizerFast
    tell_class(tokenizer_class.from_pretrained(tmp_path), tmp_path, "m")
    assert not recwarn.list

    tokenizer_class = Qwen2Tokenizer
    edit_tokenizer(tmp_path, lambda content: content.update(pre_tokenizer=BYTES))
    with pytest.warns(UserWarning, match=r"tokenizer\.json reads .* as .*; Qwen2Tokenizer, which transformers takes"):
        tell_class(tokenizer_class.from_pretrained(tmp_path), tmp_path, "m")


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def test_two_chat_templates(folder: Path) -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(template + "\n")
    edit_json(folder / "tokenizer_config.json", chat_template=template)
    assert told(folder) == []
    edit_json(folder / "tokenizer_config.json", chat_template="X" + template)

    with pytest.warns(UserWarning, match="not the same; the former is taken"):
        model = load_model(folder, device="cpu")
    assert model.tokenizer.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False) == "a"


def test_the_default_of_several_templates_beside_another(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    some = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]
    edit_json(folder / "tokenizer_config.json", chat_template=some)

    assert any("not the same; the former is taken" in one for one in told(folder))
    some[1]["template"] = "{{ messages }}"
    edit_json(folder / "tokenizer_config.json", chat_template=some)
    assert told(folder) == []


@pytest.mark.parametrize(("taken", "says"), [(None, "there is no other"), ("{{ messages }}", "another is taken")])
def test_a_template_in_a_file_that_nothing_reads(folder: Path, taken: str | None, says: str) -> None:
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "of pictures"}))
    edit_json(folder / "tokenizer_config.json", chat_template=taken)
    (folder / "chat_template.jinja").unlink(missing_ok=True)

    (message,) = told(folder)

    assert "chat template of chat_template.json is not read; " + says in message


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        ("mistral", {"causal": False}),
        ("gemma", {"bidirectional": True}),
        ("stablelm", {"is_prefix_lm": True}),
        ("mpt", {"attn_config": {"prefix_lm": True}}),
    ],
)
def test_a_mask_that_the_class_does_not_make(kind: str, stated: dict[str, Any]) -> None:
    (key,) = stated.get("attn_config", stated)

    with pytest.warns(UserWarning, match=f"states {key} = "):
        tell_unread({"model_type": kind, **stated}, without_weights(kind, {"num_hidden_layers": 2}), "config.json")


def test_a_length_that_nothing_states(folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["max_position_embeddings"]
    path.write_text(json.dumps(config))

    (message,) = told(folder)

    assert "states no length of texts" in message and "2,048 tokens are taken, LlamaConfig's default" in message


def test_a_function_that_does_not_exist_is_named_with_its_setting(folder: Path) -> None:
    edit_json(folder / "config.json", hidden_act="swigloo")

    with pytest.raises(ModelError, match=r"KeyError: 'swigloo'; config.json has it as hidden_act"):
        load_model(folder, device="cpu")
