"""Which weights are loaded from a folder that holds several is never left to an order of names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from tests.models.small_models import edit_json, put_in_hub_cache, save_small_llama, small_llama

HEAD = "lm_head.weight"


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be spoilt."""
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


def add_shards(folder: Path, seed: int, index: str = "model.safetensors.index.json") -> None:
    """Put the shards of the model of ``seed`` beside what is there, with an index."""
    other = folder.parent / f"other-{seed}"
    module: Any = small_llama(seed)
    module.save_pretrained(other, max_shard_size="20KB")
    for file in other.glob("model-*.safetensors"):
        shutil.copyfile(file, folder / file.name)
    shutil.copyfile(other / "model.safetensors.index.json", folder / index)


def test_shards_of_another_model_beside_a_whole_one(folder: Path) -> None:
    """transformers takes ``model.safetensors``; the index may be what was meant."""
    add_shards(folder, seed=1)

    with pytest.raises(ModelError, match=r"holds two models: .* take one of them out"):
        check_spec(folder)


def test_other_shapes_are_told_without_reading(folder: Path) -> None:
    add_shards(folder, seed=0)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    gone = index["weight_map"].pop(HEAD)
    assert gone
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for file in folder.glob("model-*.safetensors"):
        if file.name not in index["weight_map"].values():
            file.unlink()

    with pytest.raises(ModelError, match="two models"):
        check_spec(folder)


def test_an_index_whose_shards_are_gone(folder: Path) -> None:
    add_shards(folder, seed=1)
    for file in folder.glob("model-*.safetensors"):
        file.unlink()

    with pytest.warns(
        UserWarning, match=r"its index names model-00001-of-.*which are not there; model\.safetensors is"
    ):
        load_model(folder, device="cpu")


def test_an_index_whose_shards_are_gone_in_the_hub_cache(hub_cache: Path, folder: Path) -> None:
    add_shards(folder, seed=1)
    for file in folder.glob("model-*.safetensors"):
        file.unlink()
    put_in_hub_cache(hub_cache, "org/stale", {"main": folder})

    check_spec("org/stale")


def test_the_same_weights_twice_are_one_model(folder: Path) -> None:
    add_shards(folder, seed=0)

    with pytest.warns(UserWarning, match="model-0.* beside the model's weights are not read"):
        assert load_model(folder, device="cpu").fingerprint


def test_an_index_of_the_whole_file_or_of_shards_that_are_gone(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    for name in ("model.safetensors", "model-00001-of-00002.safetensors"):
        index.write_text(json.dumps({"metadata": {}, "weight_map": {HEAD: name}}))
        check_spec(folder)


def test_other_variants_are_told(folder: Path) -> None:
    shutil.copyfile(folder / "model.safetensors", folder / "model.fp16.safetensors")

    with pytest.warns(UserWarning, match=r"model.fp16.safetensors beside"):
        load_model(folder, device="cpu")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["other.safetensors", "other.safetensors.index.json"])
def test_the_file_that_a_config_names_is_the_model(folder: Path, name: str, dtype: str) -> None:
    """transformers reads ``transformers_weights``; fingerprint and conversion were those of ``model.safetensors``."""
    if name.endswith(".json"):
        add_shards(folder, seed=3, index=name)
    else:
        small_llama(3).save_pretrained(folder.parent / "third")
        shutil.copyfile(folder.parent / "third" / "model.safetensors", folder / name)
    edit_json(folder / "config.json", transformers_weights=name)
    third = save_small_llama(folder.parent / "plain", 3)

    model, expected = (load_model(one, device="cpu", dtype=dtype) for one in (folder, third))

    weights, wanted = (dict(one.module.named_parameters())[HEAD] for one in (model, expected))
    assert torch.equal(weights, wanted)
    assert model.fingerprint == expected.fingerprint


@pytest.mark.parametrize("name", ["absent.safetensors", "../spoilt/model.safetensors", "model.bin", 3, ""])
def test_a_named_file_that_is_none(folder: Path, name: object) -> None:
    edit_json(folder / "config.json", transformers_weights=name)

    with pytest.raises(ModelError, match=r"config.json: transformers_weights"):
        check_spec(folder)
