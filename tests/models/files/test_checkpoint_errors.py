"""Every checkpoint that cannot be loaded is refused in one line, before its weights are read."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import check_spec, load_model
from lm_audit.models.files import tokenizer_file
from tests.models.small_models import edit_json


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    """A copy of a good model folder, to be spoilt."""
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The message with which both the early check and the load refuse a folder; weights are out of reach meanwhile."""
    import transformers

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("weights were about to be read")

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", fail)
    with pytest.raises(ModelError) as early:
        check_spec(folder)
    with pytest.raises(ModelError) as late:
        load_model(folder)
    assert str(early.value) == str(late.value)
    assert "\n" not in str(late.value)
    return str(late.value)


def test_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has no config.json" in refused(tmp_path, monkeypatch)


def test_folder_of_gguf_files_hints_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.gguf").write_bytes(b"GGUF")

    assert "some.gguf itself" in refused(tmp_path, monkeypatch)


def test_config_that_is_no_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.json").write_text("{")

    assert "cannot be read as JSON" in refused(folder, monkeypatch)


PARTS = ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"]


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs Linux, whose kernel makes this file")
@pytest.mark.parametrize("name", [*PARTS, "model.safetensors", "model.safetensors.index.json"])
def test_a_part_that_the_kernel_makes(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """One as ``/proc/kmsg``, of the same kind, would be read for ever."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/proc/version")

    assert ("has no config.json" if name == "config.json" else f"{name} is a link that leads to no regular file") in (
        refused(folder, monkeypatch)
    )


@pytest.mark.parametrize("name", [*PARTS, "model.safetensors.index.json", "merges.txt"])
def test_settings_without_an_end(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with (folder / name).open("ab") as file:
        file.truncate(5 << 30)

    assert f"{name} has 5,368,709,120 bytes" in refused(folder, monkeypatch)


def test_a_chat_template_that_is_no_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "chat_template.jinja").write_bytes("{{ messages }}".encode("utf-16"))

    assert "chat_template.jinja is no text in UTF-8" in refused(folder, monkeypatch)


def test_remote_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit_json(folder / "config.json", auto_map={"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"})

    assert "trust_remote_code" in refused(folder, monkeypatch)


def test_remote_tokenizer_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization_own.Own", None]})

    assert "trust_remote_code" in refused(folder, monkeypatch)


def test_pickle_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    message = refused(folder, monkeypatch)

    assert "pickle" in message and "pytorch_model.bin" in message


def test_no_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").unlink()

    assert "has no model.safetensors" in refused(folder, monkeypatch)


def test_missing_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text("{}")
    edit_json(folder / "model.safetensors.index.json", weight_map=shards, metadata={})

    assert "not there: model-00002-of-00002.safetensors" in refused(folder, monkeypatch)


@pytest.mark.parametrize("keep", [4, 40, -1])
def test_torn_weights(folder: Path, monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])

    assert "model.safetensors" in refused(folder, monkeypatch)


def test_no_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()

    assert "no tokenizer files" in refused(folder, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("biogpt", None, "(biogpt) is read with sacremoses: pip install sacremoses"),
        ("llama", "XLMTokenizer", "(XLMTokenizer) is read with sacremoses"),
        ("llama", "RoFormerTokenizerFast", "(RoFormerTokenizerFast) is read with rjieba"),
        ("biogpt", "PreTrainedTokenizerFast", None),
    ],
)
def test_a_tokenizer_that_needs_a_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str | None, says: str | None
) -> None:
    """Told when the cases were collected, and not by the first of them."""
    real = find_spec
    absent = ("sacremoses", "rjieba")
    monkeypatch.setattr(tokenizer_file, "find_spec", lambda package: None if package in absent else real(package))
    edit_json(folder / "config.json", model_type=kind, architectures=None)
    edit_json(folder / "tokenizer_config.json", tokenizer_class=name)
    if says is None:
        check_spec(folder)
    else:
        assert says in refused(folder, monkeypatch)
    monkeypatch.setattr(tokenizer_file, "find_spec", lambda package: object())
    check_spec(folder)


def test_encoder_decoder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit_json(folder / "config.json", is_encoder_decoder=True)

    assert "encoder-decoder" in refused(folder, monkeypatch)


def test_no_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.gguf").write_bytes(b"PK\3\4 and more bytes than a header has")

    assert "is no GGUF file" in refused(tmp_path / "some.gguf", monkeypatch)


def test_a_gguf_file_that_ends_in_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.gguf").write_bytes(b"GGUF\3\0\0\0")

    assert "is cut off: it ends after 8 bytes" in refused(tmp_path / "some.gguf", monkeypatch)


def test_unknown_architecture_is_one_line(folder: Path) -> None:
    edit_json(folder / "config.json", model_type="no_such_architecture")

    with pytest.raises(ModelError, match="transformers cannot load") as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def test_absent_device(llama_folder: Path) -> None:
    import torch

    absent = "mps" if torch.cuda.is_available() else "cuda"
    with pytest.raises(UsageError, match=f"device {absent}"):
        load_model(llama_folder, device=absent)


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "tpu", ""])
def test_unknown_device(llama_folder: Path, device: str) -> None:
    with pytest.raises(UsageError, match="unknown device"):
        load_model(llama_folder, device=device)


@pytest.mark.parametrize("dtype", ["int8", "bf", "float"[:3]])
def test_unknown_dtype(llama_folder: Path, dtype: str) -> None:
    with pytest.raises(UsageError, match="unknown dtype"):
        load_model(llama_folder, dtype=dtype)


@pytest.mark.parametrize("field", ["factor", "rope_theta", "original_max_position_embeddings"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -4.0, 0, "4", True])
def test_rotations_by_no_number(folder: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: object) -> None:
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0}
    edit_json(folder / "config.json", rope_parameters=rope | {field: value})
    assert f"rope_parameters.{field} is {value!r}" in refused(folder, monkeypatch)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool", "float8_e4m3fn", "float8_e5m2"])
def test_weights_that_are_no_floats(folder: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["lm_head.weight"].to(getattr(torch, dtype))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert "without quantization_config" in (message := refused(folder, monkeypatch)) and "lm_head.weight" in message


@pytest.mark.parametrize(
    "changes",
    [
        *({"rms_norm_eps": value} for value in (float("nan"), float("inf"), -1e-5, "small", True)),
        {"initializer_range": float("nan")},
        {"attention_dropout": float("inf")},
        {"rope_theta": 0},
        {"rope_theta": float("-inf")},
        {"rope_theta": 10**400},
        {"rms_norm_eps": 10**400},
        {"num_attention_heads": 0},
        {"num_key_value_heads": 0},
        {"num_key_value_heads": 1.0},
        {"head_dim": -8},
        {"intermediate_size": 0},
        {"some": {"deep": [{"setting": float("nan")}]}},
        {"text_config": {"layer_norm_epsilon": -1}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_numbers_that_make_no_sense(folder: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    edit_json(folder / "config.json", **changes)
    message = refused(folder, monkeypatch)
    assert "config.json: " in message and str(next(iter(changes))) in message


def test_numbers_that_do_make_sense(folder: Path) -> None:
    mixed = {"num_key_value_heads": [2, 0], "time_step_limit": [0.0, float("inf")], "layer_norm_eps": None}
    read = {"rms_norm_eps": 0.0, "head_dim": None, "n_inner": None, **mixed}
    edit_json(folder / "config.json", **read)
    check_spec(str(folder))


@pytest.mark.parametrize("field", ["max_position_embeddings", "num_attention_heads", "vocab_size"])
def test_a_null_in_the_config_is_the_config_s_fault(folder: Path, field: str) -> None:
    edit_json(folder / "config.json", **{field: None})
    with pytest.raises(ModelError) as caught:
        load_model(folder, device="cpu")
    assert "config.json" in str(caught.value) and field in str(caught.value)
    assert "tokenizer" not in str(caught.value)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("name", ["eos_token_id", "bos_token_id", "pad_token_id"])
@pytest.mark.parametrize("value", [{}, "2", float("inf"), True, -2, 1.0, [2, "x"], [[2]]], ids=str)
def test_special_ids_that_are_no_ids(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str, value: object
) -> None:
    edit_json(folder / file, **{name: value})
    message = refused(folder, monkeypatch)
    assert file in message and name in message


@pytest.mark.parametrize("value", ["", {}, 0, -1, float("nan"), True, [64]], ids=str)
def test_a_length_of_the_tokenizer_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    edit_json(folder / "tokenizer_config.json", model_max_length=value)
    assert "tokenizer_config.json: model_max_length" in refused(folder, monkeypatch)


def test_special_ids_as_models_have_them(folder: Path) -> None:
    edit_json(folder / "config.json", eos_token_id=[2, 3], pad_token_id=-1, bos_token_id=None)
    edit_json(folder / "tokenizer_config.json", model_max_length=1e30)
    check_spec(str(folder))
