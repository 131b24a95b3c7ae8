"""Weights of another make than both names of the config are told by what else the folder holds; right ones are not."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.models import load_model
from lm_audit.models.checks.make import tell_make
from tests.models.architectures import ARCHITECTURES, architecture
from tests.models.small_models import edit_json

GEMMA: dict[str, Any] = {"model_type": "gemma", "architectures": ["GemmaForCausalLM"]}
LLAMA: dict[str, Any] = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be spoilt."""
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


def with_norms(folder: Path, low: float, high: float) -> None:
    """Norms as training leaves them, between two numbers."""
    generator = torch.Generator().manual_seed(3)
    weights = load_file(folder / "model.safetensors")
    for name, value in weights.items():
        if "norm" in name:
            weights[name] = low + (high - low) * torch.rand(value.shape, generator=generator)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def told(folder: Path) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        load_model(folder, device="cpu")
    return [str(one.message) for one in heard if "speaks of another make" in str(one.message)]


def test_llama_called_gemma(folder: Path) -> None:
    with_norms(folder, 0.05, 0.6)
    edit_json(folder / "config.json", **GEMMA)

    (message,) = told(folder)
    assert "config.json names gemma" in message
    assert "none of them below 0, and its class adds 1 to them" in message


def test_a_hardly_trained_llama_called_gemma(folder: Path) -> None:
    edit_json(folder / "config.json", **GEMMA, hidden_act="gelu_pytorch_tanh")

    assert len(told(folder)) == 1


def test_gemma_called_llama(folder: Path) -> None:
    with_norms(folder, -0.5, 0.9)

    (message,) = told(folder)
    assert "are negative" in message and "takes them as they are" in message


def test_gemma_called_gemma_and_llama_called_llama(folder: Path) -> None:
    with_norms(folder, 0.01, 1.4)
    assert told(folder) == []
    with_norms(folder, -0.5, 0.9)
    edit_json(folder / "config.json", **GEMMA, hidden_act="gelu_pytorch_tanh")
    assert told(folder) == []


def test_gemma_whose_norms_all_lie_above_0(folder: Path) -> None:
    """Alone that says too little."""
    with_norms(folder, 0.1, 2.0)
    edit_json(folder / "config.json", **GEMMA, hidden_act="gelu_pytorch_tanh")
    assert told(folder) == []
    edit_json(folder / "tokenizer_config.json", chat_template="[INST] {{ messages[0].content }} [/INST]")
    (folder / "chat_template.jinja").unlink()
    assert len(told(folder)) == 1


def test_files_of_another_make(folder: Path) -> None:
    """One of them may be a choice of whoever trained it."""
    (folder / "chat_template.jinja").write_text("<start_of_turn>user {{ messages[0].content }}")
    assert told(folder) == []
    edit_json(folder / "config.json", _name_or_path="google/gemma-7b-it")

    (message,) = told(folder)
    assert "begins turns by <start_of_turn>, as gemma do" in message and "google/gemma-7b-it" in message


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_no_right_model_is_told(name: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    module = architecture(name)
    config = {**module.config.to_dict(), "_name_or_path": f"org/{module.config.model_type}-7b"}

    tell_make(module, config, tmp_path, tmp_path)

    assert [str(one.message) for one in recwarn.list if "another make" in str(one.message)] == []
