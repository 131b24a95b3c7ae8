"""A config that names two makes, or its rotary settings twice, misspelt or where nothing reads them, is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from lm_audit.models.files.class_names import check_causal_kind, check_class_names
from lm_audit.models.files.rope_settings import check_rope
from tests.models.small_models import edit_json

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
DEFAULT = {"rope_type": "default", "rope_theta": 1e6}
CONFIG = Path("config.json")


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be spoilt."""
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("LlamaForCausalLM", "gemma"),
        ("GemmaForCausalLM", "llama"),
        ("LlamaForCausalLM", "mistral"),
        ("Qwen2ForCausalLM", "llama"),
        ("GPTNeoXForCausalLM", "gpt_neo"),
        ("Gemma2ForCausalLM", "gemma3_text"),
        ("LlamaModel", "olmo"),
    ],
)
def test_a_class_of_another_make(folder: Path, names: str, kind: str) -> None:
    """Weights of Llama called gemma load, since names and shapes are the same, and score 30 nats lower."""
    edit_json(folder / "config.json", architectures=[names], model_type=kind)

    with pytest.raises(ModelError, match=f"architectures names {names}, .*model_type is '{kind}'"):
        check_spec(folder)


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "llava", "siglip", "wav2vec2", "deberta"])
def test_a_kind_without_a_causal_language_model(folder: Path, kind: str) -> None:
    edit_json(folder / "config.json", model_type=kind, architectures=["X"])

    with pytest.raises(ModelError, match=f"model_type is '{kind}', of which transformers has no causal"):
        check_spec(folder)


@pytest.mark.parametrize(
    ("kind", "name", "whole"),
    [("mllama_text_model", "MllamaForCausalLM", "mllama"), ("emu3_text_model", "Emu3ForCausalLM", "emu3")],
)
def test_a_part_of_a_model_with_pictures_is_told_the_whole_ones_kind(kind: str, name: str, whole: str) -> None:
    with pytest.raises(ModelError, match=f"it finds {name} by {whole}: write a config of that model_type"):
        check_causal_kind({"model_type": kind, "architectures": [3, name]}, CONFIG)


def test_every_kind_that_transformers_takes_is_let_pass() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    for kind in (*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "a_kind_to_come"):
        check_causal_kind({"model_type": kind}, CONFIG)
    check_causal_kind({"model_type": "llava", "auto_map": {"AutoModelForCausalLM": "x.Y"}}, CONFIG)


def test_both_names_of_a_nested_config() -> None:
    part = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    check_class_names(part, CONFIG)
    with pytest.raises(ModelError, match="MistralForCausalLM"):
        check_class_names(part | {"model_type": "llama"}, CONFIG)


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLM"], "model_type": "exaone"},
        {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "sarvam_mla"},
        {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3_text"},
        {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt-sw3"},
        {"architectures": ["Mine", "LlamaForCausalLM"], "model_type": "llama"},
        {"architectures": ["MyForCausalLM"], "model_type": "llama"},
        {"architectures": ["LlamaForCausalLM"], "model_type": "my", "auto_map": {"AutoConfig": "x.Y"}},
        {"architectures": ["LlamaForCausalLM"], "model_type": "gemma", "auto_map": {"AutoConfig": "x.Y"}},
        {"architectures": None, "model_type": "gemma"},
        {"architectures": [], "model_type": "gemma"},
        {"model_type": "gemma"},
    ],
    ids=str,
)
def test_names_that_agree_or_say_nothing(config: dict[str, Any]) -> None:
    check_class_names(config, CONFIG)


def test_a_class_that_nobody_knows_is_told(folder: Path) -> None:
    edit_json(folder / "config.json", architectures=["LLaMAForCausalLM"])

    with pytest.warns(UserWarning, match="names the class LLaMAForCausalLM, .* LlamaForCausalLM is taken"):
        load_model(folder, device="cpu")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rope_scaling": YARN | {"type": "linear"}}, "states rope_type 'yarn' and type 'linear'"),
        ({"rope_scaling": {"rope_type": "default", "type": "dynamic", "factor": 2.0}}, "'default' and type 'dynamic'"),
        ({"rope_scaling": YARN, "rope_parameters": DEFAULT}, "rope_type 'yarn' and 'default'"),
        ({"rope_scaling": YARN, "rope_parameters": YARN | {"factor": 8.0}}, "factor 4.0 and 8.0"),
        ({"rope_scaling": YARN, "rope_parameters": YARN | {"rope_theta": 1e6}}, "rope_theta None and 1000000.0"),
        ({"rope_theta": 1e4, "rope_parameters": DEFAULT}, "rope_theta is 10000.0 and rope_parameters.rope_theta"),
        ({"rope_theta": 1e4, "rope_scaling": YARN | {"rope_theta": 1e6}}, "rope_scaling.rope_theta is 1000000.0"),
        ({"partial_rotary_factor": 0.5, "rope_parameters": DEFAULT | {"partial_rotary_factor": 1.0}}, "is 0.5 and"),
        ({"original_max_position_embeddings": 64, "rope_scaling": YARN}, "original_max_position_embeddings is 64 and"),
        (
            {"rope_parameters": {"factor": 4.0, "full_attention": YARN | {"factor": 8.0}}},
            "rope_parameters.factor is 4.0 and rope_parameters.full_attention.factor is 8.0",
        ),
        ({"rope_scaling": {"rope_type": "linear", "facter": 4.0}}, "no setting 'facter'; factor is meant"),
        ({"rope_scaling": YARN | {"orignal_max_position_embeddings": 32}}, "'orignal_max_position_embeddings'"),
        ({"rope_scaling": YARN | {"mscale_all_dims": 1.0}}, "mscale_all_dim is meant"),
        ({"rope_parameters": {"full_attenion": DEFAULT}}, "full_attention is meant"),
        ({"rope_scalling": YARN}, "'rope_scalling' is unknown to transformers; rope_scaling is meant"),
        ({"rope_parameter": DEFAULT}, "rope_parameters is meant"),
        ({"rope_thetha": 1e6}, "rope_theta is meant"),
        ({"rope_scaling": {"factor": 4.0}}, "states factor and no rope_type"),
        ({"rope_scaling": {"rope_type": "yarm", "factor": 4.0}}, "'yarm', a kind of scaling .* it knows .*yarn"),
        ({"rope_scaling": {"rope_type": 3, "factor": 4.0}}, "rope_type is 3"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'; expected an object"),
    ],
    ids=str,
)
def test_rotary_settings_that_contradict_or_do_nothing(folder: Path, settings: dict[str, Any], says: str) -> None:
    config = folder / "config.json"
    edit_json(config, **{"rope_parameters": None, **settings})

    with pytest.raises(ModelError, match=says) as refused:
        check_spec(folder)
    assert str(refused.value).startswith(str(config))


@pytest.mark.parametrize(
    "settings",
    [
        {"rope_scaling": None, "rope_theta": 1e6, "rope_parameters": DEFAULT},
        {"rope_scaling": {}, "rope_parameters": DEFAULT},
        {"rope_scaling": {"type": "yarn", **YARN}, "rope_theta": 1e6, "rope_parameters": YARN | {"rope_theta": 1e6}},
        {"rope_theta": 1e6, "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [16, 24, 24]}},
        {"rope_scaling": {"type": "su", "rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}},
        {"rope_scaling": {"type": "xdrope", "alpha": 1000.0, "xdrope_section": [16, 16, 16, 16]}},
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32}},
        {"rope_scaling": {"rope_type": "dynamic", "factor": 1.0, "alpha": 1000.0, "mscale": 1.0}},
        {
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        {
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        {"partial_rotary_factor": 0.25, "rope_parameters": DEFAULT},
        {"rope_parameters": {"hybrid": DEFAULT, "hybrid_sliding": DEFAULT, "rope_type": "default"}},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "llama_4_scaling_beta": 0.1}},
        {"rope_ratio": 500, "rope_interleaved": True, "rope_pct": 0.25, "use_rope": True, "rope_dim": 64},
    ],
    ids=str,
)
def test_rotary_settings_that_model_cards_have(settings: dict[str, Any]) -> None:
    check_rope(settings, CONFIG)


def test_a_kind_of_a_checkpoints_own_code() -> None:
    check_rope({"rope_scaling": {"rope_type": "mine", "factor": 2.0}}, CONFIG, own_code=True)


def test_settings_for_layers_that_an_architecture_does_not_have(folder: Path) -> None:
    """Llama takes one object: it would rotate by the default, without a word."""
    kinds = {"full_attention": YARN | {"rope_theta": 1e4}, "sliding_attention": DEFAULT}
    edit_json(folder / "config.json", rope_parameters=kinds)

    with pytest.raises(ModelError, match=r"settings for full_attention, sliding_attention, and LlamaForCausalLM"):
        load_model(folder, device="cpu")


def test_a_setting_that_transformers_passes_over_is_told(folder: Path) -> None:
    edit_json(folder / "config.json", rope_parameters=DEFAULT | {"factor": 4.0})

    with pytest.warns(UserWarning, match="Unrecognized keys in `rope_parameters`.*factor"):
        load_model(folder, device="cpu")
