"""A checkpoint that lacks tensors, has others or has them in other shapes is no model: it is refused by their names."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.checks.weights_fit import check_finite
from tests.models.pretrained import llama
from tests.models.small_models import edit_json, save_small_llama
from tests.present import present

Tensors = dict[str, Any]


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(llama_folder, tmp_path / "changed")


def rewrite(folder: Path, change: Callable[[Tensors], Tensors]) -> None:
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", metadata={"format": "pt"})


def without(part: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (without("layers.1.mlp"), "missing: model.layers.1.mlp.down_proj.weight"),
        (without("lm_head"), "missing: lm_head.weight"),
        (without("model.norm"), "missing: model.norm.weight"),
        (lambda t: {f"_orig_mod.{k}": v for k, v in t.items()}, "not part of the model: _orig_mod.lm_head.weight"),
        (lambda t: t | {"score.weight": torch.zeros(1, 16)}, "not part of the model: score.weight"),
        (
            lambda t: t | {"lm_head.weight": torch.zeros(300, 16)},
            r"lm_head.weight has \[300, 16\], its config",
        ),
    ],
)
def test_tensors_that_are_not_the_model_s(folder: Path, change: Callable[[Tensors], Tensors], named: str) -> None:
    rewrite(folder, change)

    with pytest.raises(ModelError, match=named) as caught:
        load_model(folder, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("layers", "named"), [(1, "not part of the model: model.layers.1"), (3, "model.layers.2")])
def test_another_number_of_layers(folder: Path, layers: int, named: str) -> None:
    edit_json(folder / "config.json", num_hidden_layers=layers)

    with pytest.raises(ModelError, match=named):
        load_model(folder, device="cpu")


@pytest.mark.parametrize(("drafts", "good"), [((), False), (("model.layers.78.eh_proj.weight",), True)])
def test_a_layer_that_its_class_passes_over_by_its_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch, drafts: tuple[str, ...], good: bool
) -> None:
    """As GLM's and DeepSeek's do with the number behind the last: their published models draft with it."""
    from transformers import LlamaForCausalLM

    monkeypatch.setattr(LlamaForCausalLM, "_keys_to_ignore_on_load_unexpected", [r"model\.layers\.78.*"])
    left = ["model.layers.78.mlp.up_proj.weight", *drafts]
    rewrite(folder, lambda tensors: tensors | {name: torch.zeros(24, 16) + 1 for name in left})

    with nullcontext() if good else pytest.raises(ModelError, match=r"not part of the model: model\.layers\.78\.mlp"):
        load_model(folder, device="cpu")


def test_bounds_that_are_infinite_are_none() -> None:
    """Gemma 4 clips what its layers for sound read and write, where it has bounds at all."""
    module: Any = torch.nn.Module()
    module.register_buffer("input_max", torch.tensor(float("inf")))
    check_finite(module, ["input_max"], "m")
    module.register_buffer("output_min", torch.tensor(float("nan")))
    with pytest.raises(ModelError, match="NaN or Inf in the weights output_min"):
        check_finite(module, ["output_min"], "m")


def test_the_library_s_silence_hides_nothing(folder: Path) -> None:
    import logging as levels

    from transformers.utils import logging

    rewrite(folder, without("layers.0.mlp"))
    level = logging.get_verbosity()
    logging.set_verbosity(levels.CRITICAL)
    try:
        with pytest.raises(ModelError, match="missing"):
            load_model(folder, device="cpu")
    finally:
        logging.set_verbosity(level)


def test_a_shard_that_lacks_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = {"a.safetensors": list(tensors)[:9], "b.safetensors": list(tensors)[9:]}
    for name, keys in halves.items():
        save_file({key: tensors[key] for key in keys if "k_proj" not in key}, folder / name, metadata={"format": "pt"})
    places = {key: name for name, keys in halves.items() for key in keys}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    with pytest.raises(ModelError, match=r"places tensors where they are not: .*k_proj"):
        load_model(folder, device="cpu")

    kept = {key: name for key, name in places.items() if "k_proj" not in key}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": kept}))
    with pytest.raises(ModelError, match=r"missing: model.layers.0.self_attn.k_proj"):
        load_model(folder, device="cpu")


def test_tied_weights_may_be_left_out_or_spelt_out(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "tied", tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    one = load_model(folder, device="cpu")

    rewrite(folder, lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"].clone()})
    both = load_model(folder, device="cpu")

    ids = torch.arange(3, 20)[None]
    assert torch.equal(one.module(ids).logits, both.module(ids).logits)


def test_what_the_library_says_of_weights_is_told(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "tied", tie_word_embeddings=True)
    rewrite(folder, lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"] + 1})

    with pytest.warns(UserWarning, match="both are present in the checkpoints with different values"):
        load_model(folder, device="cpu")


def test_buffers_of_older_versions_still_load(folder: Path, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    rewrite(folder, lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})
    load_model(folder, device="cpu")

    gpt2 = tmp_path / "gpt2"
    shape: dict[str, Any] = {
        "n_embd": 16,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": 32,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    GPT2LMHeadModel(GPT2Config(vocab_size=259, **shape)).save_pretrained(gpt2)
    byte_tokenizer(32).save_pretrained(gpt2)
    masks = {"attn.bias": torch.ones(1, 1, 32, 32), "attn.masked_bias": torch.tensor(-1e4)}
    rewrite(gpt2, lambda t: t | {f"transformer.h.0.{name}": value for name, value in masks.items()})
    load_model(gpt2, device="cpu")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_that_are_no_numbers(folder: Path, own_cache: Path, value: float, dtype: torch.dtype) -> None:
    def spoil(tensors: Tensors) -> Tensors:
        tensors["model.layers.1.mlp.up_proj.weight"][3, 4] = value
        return {name: tensor.to(dtype) for name, tensor in tensors.items()}

    rewrite(folder, spoil)

    with pytest.raises(ModelError, match=r"NaN or Inf in the weights model.layers.1.mlp.up_proj.weight$"):
        load_model(folder, device="cpu")


def test_a_model_too_large_for_its_weights_is_not_built(folder: Path) -> None:
    for changes in ({"num_hidden_layers": 10**9}, {"vocab_size": 10**12}, {"hidden_size": 10**7}):
        spoilt = shutil.copytree(folder, folder.parent / f"{next(iter(changes))}")
        edit_json(spoilt / "config.json", **changes)
        with pytest.raises(ModelError, match=r"config.json"):
            load_model(spoilt, device="cpu")


def test_a_changed_config_reaches_the_converted_copy(tmp_path: Path, own_cache: Path) -> None:
    """The stored float32 copy of bfloat16 weights is made of the whole folder, not of the weights alone."""
    first = save_small_llama(tmp_path / "first", dtype="bfloat16")
    second = shutil.copytree(first, tmp_path / "second")
    load_model(first, device="cpu")
    edit_json(second / "config.json", rope_parameters={"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0})
    (second / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 99]}))

    model = load_model(second, device="cpu")

    assert model.module.config.rope_parameters["rope_theta"] == 100.0
    assert present(llama(model.module).generation_config).eos_token_id == [2, 99]
    assert len([one for one in os.listdir(own_cache / "converted") if "." not in one]) == 2, "one copy of each folder"
