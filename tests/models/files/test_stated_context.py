"""What files say of the context before a model loads, held against what the loaded configuration says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import transformers

from lm_audit.models.context import Attributes, context_window
from lm_audit.models.files.stated_context import stated_context
from tests.models.architectures import _BASE, ARCHITECTURES
from tests.models.files.small_gguf import random_llama, write_gguf
from tests.models.small_models import edit_json, put_in_hub_cache, save_small_llama

DIFFERENT = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0}


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_files_never_contradict_the_loaded_configuration(tmp_path: Path, name: str) -> None:
    config_class, settings, unknown = ARCHITECTURES[name]
    shape = {key: value for key, value in _BASE.items() if key not in unknown}
    config = getattr(transformers, config_class)(**{**shape, **settings})
    config.save_pretrained(tmp_path)

    written = json.loads((tmp_path / "config.json").read_text())
    assert context_window(Attributes(written)) in (None, context_window(config))


def test_folders_files_and_names(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "model")
    length = transformers.AutoConfig.from_pretrained(folder).max_position_embeddings
    assert stated_context(str(folder)) == length
    copy = save_small_llama(tmp_path / "longer")
    edit_json(copy / "config.json", rope_parameters=DIFFERENT, max_position_embeddings=32)
    assert stated_context(str(copy)) == 128
    assert stated_context(str(write_gguf(tmp_path / "plain.gguf", random_llama()))) == 64
    assert stated_context("tiny") == 512
    assert stated_context(str(tmp_path / "absent")) is None
    (copy / "config.json").write_text("{")
    assert stated_context(str(copy)) is None


@pytest.mark.parametrize(
    "more",
    [
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        {"llama.rope.scale_linear": 2.0},
        {"llama.rope.scaling.type": "none"},
        {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0},
        {
            "llama.rope.scaling.type": "yarn",
            "llama.rope.scaling.factor": 4.0,
            "llama.rope.scaling.original_context_length": 32,
        },
    ],
    ids=str,
)
def test_scaled_gguf_files_state_what_their_conversion_has(
    tmp_path: Path, own_cache: Path, more: dict[str, object]
) -> None:
    from lm_audit.models import load_model

    path = write_gguf(tmp_path / "scaled.gguf", random_llama(), more=more)
    assert stated_context(str(path)) == load_model(path, device="cpu").context_window


def test_gguf_files_with_factors_state_what_their_conversion_has(tmp_path: Path, own_cache: Path) -> None:
    import numpy as np

    from lm_audit.models import load_model

    module = random_llama()
    factors = np.full(module.config.head_dim // 2, 2.0, dtype=np.float32)
    path = write_gguf(tmp_path / "factors.gguf", module, tensors={"rope_freqs.weight": factors})
    assert stated_context(str(path)) == load_model(path, device="cpu").context_window
    both = {"rope_factors_long.weight": factors, "rope_factors_short.weight": factors / 2}
    more = {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.original_context_length": 16}
    path = write_gguf(tmp_path / "longrope.gguf", module, tensors=both, more=more)
    assert stated_context(str(path)) == load_model(path, device="cpu").context_window


def test_it_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from lm_audit.models.files.stated_context import stated_context as stated; "
        "stated('tiny'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_config_without_weights_in_the_cache_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    folder = tmp_path / "begun"
    folder.mkdir()
    assert stated_context("org/begun") is None
    (folder / "config.json").write_text((save_small_llama(tmp_path / "whole") / "config.json").read_text())
    put_in_hub_cache(tmp_path / "hub", "org/begun", {"main": folder})
    assert stated_context("org/begun") == 64
    assert stated_context("org/absent") is None


def test_a_config_that_changed_is_read_again(tmp_path: Path) -> None:
    folder = save_small_llama(tmp_path / "model")
    assert stated_context(str(folder)) == 64
    edit_json(folder / "config.json", max_position_embeddings=1024)
    assert stated_context(str(folder)) == 1024
