"""Quantised checkpoints: read by transformers as their config says, named as what they are, or refused by one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from lm_audit.models.files.quantised import methods as quantised
from lm_audit.models.files.quantised.methods import quantised_by
from tests.models.small_models import edit_json, save_small_llama

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [16, 16]}


def save_fp8(folder: Path, **settings: Any) -> Path:
    """A small Llama whose linear layers are stored in 8 bits, a scale for each block of 16 x 16."""
    save_small_llama(folder, hidden_size=32, intermediate_size=48, context=128)
    path = folder / "model.safetensors"
    tensors: dict[str, Any] = {}
    for name, value in load_file(path).items():
        tensors[name] = value
        if "proj" in name:
            blocks = value.reshape(value.shape[0] // 16, 16, value.shape[1] // 16, 16)
            scale = blocks.abs().amax(dim=(1, 3)) / 448
            small = (blocks / scale[:, None, :, None]).reshape(value.shape)
            tensors[name] = small.to(torch.float8_e4m3fn)
            tensors[f"{name}_scale_inv"] = scale
    save_file(tensors, path, metadata={"format": "pt"})
    edit_json(folder / "config.json", quantization_config=FP8 | settings)
    return folder


def test_eight_bit_weights_are_read_as_their_config_says(tmp_path: Path) -> None:
    plain = load_model(save_small_llama(tmp_path / "plain", hidden_size=32, intermediate_size=48, context=128),
                       device="cpu")  # fmt: skip
    small = load_model(save_fp8(tmp_path / "fp8"), device="cpu")
    assert small.quantised_by == "fp8 (e4m3)" and plain.quantised_by is None
    assert small.fingerprint != plain.fingerprint
    requests = [("The quick", " brown fox jumps over the lazy dog")]
    found, wanted = (model.loglikelihood(requests)[0].logprobs for model in (small, plain))
    np.testing.assert_allclose(found, wanted, atol=0.05)
    assert np.abs(found - wanted).max() > 1e-6, "they are 8 bits, not the weights of before"


@pytest.fixture(scope="module")
def eight_bits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that tests copy."""
    return save_fp8(tmp_path_factory.mktemp("eight-bits") / "fp8")


def test_eight_bits_are_the_same_weights_where_there_is_a_gpu(
    eight_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers would compute in FP8, even for a model on the CPU, by a kernel that it fetches from the hub."""
    ids = torch.arange(3, 40)[None]
    plain = load_model(eight_bits, device="cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    beside_a_gpu = load_model(eight_bits, device="cpu")
    assert beside_a_gpu.fingerprint == plain.fingerprint
    assert torch.equal(beside_a_gpu.module(ids).logits, plain.module(ids).logits)


@pytest.mark.parametrize("settings", [{}, {"quant_method": "mxfp8"}], ids=str)
@pytest.mark.parametrize("cut", ["rows", "columns", "all"])
def test_other_scales_than_there_are_blocks(
    eight_bits: Path, tmp_path: Path, settings: dict[str, Any], cut: str
) -> None:
    """transformers would spread those that there are over the weights, and take 1 where there is none."""
    folder = shutil.copytree(eight_bits, tmp_path / "fp8")
    path = folder / "model.safetensors"
    keep: dict[str, Any] = {"rows": slice(0, 1), "columns": (slice(None), slice(0, 1))}
    tensors = load_file(path)
    scales = {name: value for name, value in tensors.items() if name.endswith("scale_inv")}
    other = {} if cut == "all" else {name: value[keep[cut]].contiguous() for name, value in scales.items()}
    save_file({name: value for name, value in tensors.items() if name not in scales} | other, path, {"format": "pt"})
    edit_json(folder / "config.json", quantization_config=FP8 | settings)

    says = "in FP8 without their scales: " if cut == "all" else r"for each block of 16 x 16 weights, .* others: "
    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=rf"{says}model\.layers\.0\.mlp\.down_proj\.weight"):
            refuse(folder)


def test_a_scale_under_the_names_of_other_makes(eight_bits: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(eight_bits, tmp_path / "fp8")
    path = folder / "model.safetensors"
    want = load_model(eight_bits, device="cpu").module(torch.arange(3, 40)[None]).logits
    for ending in (".scale", ".qscale_weight"):
        renamed = {
            name.replace(".weight_scale_inv", ending): value
            for name, value in load_file(eight_bits / path.name).items()
        }
        save_file(renamed, path, {"format": "pt"})
        assert torch.equal(load_model(folder, device="cpu").module(torch.arange(3, 40)[None]).logits, want)


def test_blocks_that_do_not_fill_their_weights(tmp_path: Path) -> None:
    """De-quantised by transformers, 48 rows in blocks of 32 would be two blocks of 24."""
    folder = save_fp8(tmp_path / "fp8", weight_block_size=[32, 32])
    path = folder / "model.safetensors"
    tensors = load_file(path)
    scales = {
        f"{name}_scale_inv": torch.rand(-(-value.shape[0] // 32), -(-value.shape[1] // 32))
        for name, value in tensors.items()
        if "proj" in name and name.endswith("weight")
    }
    save_file(tensors | scales, path, {"format": "pt"})

    with pytest.raises(
        ModelError, match=r"blocks of \[32, 32\] do not fill model\.layers\.0\.mlp\.down_proj\.weight \[32, 48\]"
    ):
        check_spec(folder)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"quant_method": "hqq", "nbits": 4}, "hqq (4 bits), which transformers reads with hqq: pip install hqq"),
        ({"load_in_4bit": True}, "bitsandbytes (4 bits), which transformers reads with bitsandbytes"),
        ({"quant_method": "gptq", "bits": 4}, "with optimum and gptqmodel: pip install optimum gptqmodel"),
        ({"bits": 4}, "expected an object whose quant_method says how"),
        ("int4", "expected an object"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "compressed-tensors (pack-quantized)"),
    ],
)
def test_a_missing_package_is_named_before_anything_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, words: str
) -> None:
    there = {"accelerate"}
    monkeypatch.setattr(quantised, "find_spec", lambda name: name in there or None)
    folder = save_small_llama(tmp_path / "model")
    edit_json(folder / "config.json", quantization_config=settings)
    with pytest.raises(ModelError) as caught:
        check_spec(str(folder))
    assert words in str(caught.value) and "\n" not in str(caught.value)
    there |= {module for needed in quantised.PACKAGES.values() for module, _ in needed}
    if isinstance(settings, dict) and "expected" not in words:
        check_spec(str(folder))


@pytest.mark.parametrize("method", ["GPTQ", "fp8x", "nonsense\u202e", "x" * 500])
def test_a_method_that_transformers_does_not_know_is_refused(tmp_path: Path, method: str) -> None:
    """It would load the stored numbers as they are, and warn."""
    folder = save_small_llama(tmp_path / "model")
    edit_json(folder / "config.json", quantization_config={"quant_method": method})
    with pytest.raises(ModelError) as caught:
        check_spec(str(folder))
    told = str(caught.value)
    assert "which this transformers does not know; it knows aqlm, " in told and "gptq" in told
    assert "\u202e" not in told and "\n" not in told and len(told) < 900


def test_weights_that_are_there_packed_and_as_they_are(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "model")
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.0.mlp.down_proj.weight"
    edit_json(folder / "config.json", quantization_config={"quant_method": "mxfp4"})
    check_spec(folder)

    save_file(tensors | {f"{name}_blocks": torch.zeros(1, dtype=torch.uint8)}, path, {"format": "pt"})
    with pytest.raises(ModelError, match=rf"weights twice, packed in blocks and as they are: {name}$"):
        check_spec(folder)


def test_methods_that_need_no_package_are_let_through(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "model")
    for method in (*quantised.PLAIN, "bitnet"):
        edit_json(folder / "config.json", quantization_config={"quant_method": method})
        check_spec(str(folder))


def test_every_method_of_the_table_is_one_that_transformers_knows() -> None:
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    assert {*quantised.PACKAGES, *quantised.PLAIN} - {"bitsandbytes"} <= set(AUTO_QUANTIZATION_CONFIG_MAPPING)


def test_what_a_checkpoint_was_quantised_by_is_short_text() -> None:
    assert quantised_by({}) is None and quantised_by({"quantization_config": None}) is None
    assert quantised_by({"quantization_config": {"quant_method": "mxfp4"}}) == "mxfp4"
    torchao = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}
    assert quantised_by({"quantization_config": torchao}) == "torchao (Int8WeightOnlyConfig)"
    assert len(quantised_by({"quantization_config": {"quant_method": "x" * 999}}) or "") <= 120
    assert json.dumps(quantised_by({"quantization_config": [1]})) == '"an unknown method"'
