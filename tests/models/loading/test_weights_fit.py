"""A checkpoint that lacks tensors, has others or has them in other shapes is no model: it is refused by their names."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.checks.make import _tell_dead_norms
from lm_audit.models.checks.stored_buffers import tell_buffers
from lm_audit.models.checks.weights_fit import check_finite
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import architecture
from tests.models.pretrained import llama
from tests.models.scoring.small_models import small_module
from tests.models.small_models import edit_json, save_small_llama, small_llama
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


@pytest.mark.parametrize(("spoil", "says"), [("gone", "got size 3"), ("short", r"\[7, 64\] at entry 3")])
def test_an_expert_that_is_not_whole(tmp_path: Path, spoil: str, says: str) -> None:
    """transformers stacks experts as it reads them; its table was cut before the name, behind a line of dashes."""
    folder, name = tmp_path / "experts", "model.layers.1.block_sparse_moe.experts.3.w3.weight"
    architecture("mixtral").save_pretrained(folder)
    byte_tokenizer(128).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    whole = weights.pop(name)
    save_file(weights | ({name: whole[:7]} if spoil == "short" else {}), folder / "model.safetensors", {"format": "pt"})

    with pytest.raises(ModelError, match=rf"model\.layers\.1\.mlp\.experts\.gate_up_proj \(MISSING\).*{says}"):
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


def frequencies(base: float, numbers: int = 4) -> torch.Tensor:
    return 1 / base ** (torch.arange(numbers) / numbers)


def heard(module: Any, folder: Path, stored: Tensors) -> list[str]:
    """What is told of buffers that lie beside the weights of ``module`` in a file."""
    save_file(stored, folder / "stored.safetensors")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tell_buffers(module, [folder / "stored.safetensors"], "m")
    return [str(one.message) for one in told]


LINEAR = {"rope_type": "linear", "rope_theta": 5e5, "factor": 4.0}
INVERSE = "model.layers.1.self_attn.rotary_emb.inv_freq"


@pytest.mark.parametrize(
    ("rope", "stored", "told"),
    [
        (None, frequencies(1e4), False),
        (None, frequencies(1e4).half(), False),
        (None, frequencies(1e6), True),
        (None, frequencies(1e4) / 4, True),  # scaled by hand, and its config does not say so
        (LINEAR, frequencies(5e5), False),  # older versions saved them unscaled
        (LINEAR, frequencies(5e5) / 4, False),
        (LINEAR, frequencies(1e4), True),
    ],
)
def test_frequencies_that_older_versions_saved(tmp_path: Path, rope: Any, stored: torch.Tensor, told: bool) -> None:
    module = small_llama(**({} if rope is None else {"rope_parameters": rope}))

    messages = heard(module, tmp_path, {INVERSE: stored})

    assert [f"frequencies of the rotation ({INVERSE})" in one for one in messages] == [True] * told


def test_masks_that_older_versions_saved(tmp_path: Path) -> None:
    """GPT-2 keeps none any more; those of GPT-Neo's local layers are windows."""
    ones, gpt2, neo = torch.ones(1, 1, 48, 48), small_module("gpt2"), small_module("gpt_neo")
    window = dict(neo.named_buffers())["transformer.h.1.attn.attention.bias"]

    assert heard(gpt2, tmp_path, {"transformer.h.0.attn.bias": ones.tril().to(torch.uint8)}) == []
    assert heard(gpt2, tmp_path, {"transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}) == []
    (message,) = heard(gpt2, tmp_path, {"transformer.h.1.attn.bias": ones})
    assert "hold a mask (transformer.h.1.attn.bias) that its config does not give" in message
    assert heard(neo, tmp_path, {"transformer.h.1.attn.attention.bias": window.clone()}) == []
    assert heard(neo, tmp_path, {"transformer.h.1.attn.attention.bias": torch.ones_like(window).tril()}) != []


def test_buffers_of_older_versions_still_load(folder: Path) -> None:
    rewrite(folder, lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})

    with pytest.warns(UserWarning, match="frequencies of the rotation"):
        load_model(folder, device="cpu")


def test_a_model_that_reads_nothing(folder: Path) -> None:
    """Zeros in its last norm, which is no matrix."""
    rewrite(folder, lambda t: t | {"model.norm.weight": torch.zeros(16)})

    with pytest.warns(UserWarning) as told:
        load_model(folder, device="cpu")
    messages = [str(one.message) for one in told]
    assert any(
        "answers the same whatever it reads: another first of 8 tokens moves no logit" in one for one in messages
    )
    assert any("nothing but zeros in the weights of model.norm, by which all is multiplied" in one for one in messages)


def test_norms_that_add_one_may_be_zeros(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    module = small_module("gemma")
    for part in module.modules():
        if "Norm" in type(part).__name__:
            part.weight.data.zero_()

    _tell_dead_norms(module, tmp_path)

    assert not recwarn.list


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
