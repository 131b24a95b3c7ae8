"""Damaged, misplaced and misnamed files: one line that names the file, before anything runs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import HarnessError, ModelError, UsageError
from lm_audit.models import check_spec, load_model
from lm_audit.models.files.hub import cached_revisions
from tests.models.small_models import edit_json, put_in_hub_cache


@pytest.fixture
def folder(llama_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(llama_folder, tmp_path / "spoilt")


def refused(spec: object, *, kind: type[HarnessError] = ModelError, early: bool = True) -> str:
    with pytest.raises(kind) as caught:
        load_model(str(spec), device="cpu")
    if early:
        with pytest.raises(kind) as before:
            check_spec(str(spec))
        assert str(before.value) == str(caught.value)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 2000
    return message


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(change(json.loads(content[8 : 8 + length]))).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])


def entry(name: str, **changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header | {name: header[name] | changes}


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (entry(NORM, dtype="F16"), "has 64 bytes; F16"),
        (entry(NORM, dtype="Q9"), "unknown dtype 'Q9'"),
        (entry(NORM, dtype=None), "unknown dtype None"),
        (entry(NORM, shape=[17]), "needs 68"),
        (entry(NORM, shape=[-16]), "has the shape"),
        (entry(NORM, shape=[2**40, 2**40]), "needs"),
        (entry(NORM, shape="16"), "has the shape"),
        (entry(NORM, data_offsets=[0, 64]), "overlaps"),
        (entry(NORM, data_offsets=[64, 0]), "bytes; F32"),
        (entry(NORM, data_offsets=[0.5, 64]), "data_offsets"),
        (entry(NORM, data_offsets=[10**9, 10**9 + 64]), "gap"),
        (lambda header: header | {"x": 3}, "tensor 'x' has no dtype"),
        (lambda header: [header], "its header is a list"),
        (lambda header: header | {"__metadata__": {"format": 3}}, "__metadata__"),
        (lambda header: {k: v for k, v in header.items() if k != NORM}, "is damaged"),
    ],
    ids=range(15),
)
def test_safetensors_headers(folder: Path, change: Callable[[dict[str, Any]], Any], says: str) -> None:
    rewrite_header(folder / "model.safetensors", change)

    message = refused(folder)

    assert "model.safetensors" in message and says in message


def test_a_header_that_names_a_tensor_twice(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()
    doubled = header[:-1] + b',"lm_head.weight":' + json.dumps(json.loads(header)["lm_head.weight"]).encode() + b"}"
    path.write_bytes(len(doubled).to_bytes(8, "little") + doubled + content[8 + length :])

    assert "names 'lm_head.weight' twice" in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_in_a_file_s_place(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()

    assert name in refused(folder)


def test_a_folder_named_like_a_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").mkdir()

    assert "x.gguf': is a folder" in refused(tmp_path / "x.gguf")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_may_not_be_read(folder: Path, name: str) -> None:
    (folder / name).chmod(0)

    assert name in refused(folder)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "null", '"x"', "[" * 100_000, '{"model_type": ' + "9" * 5000 + "}", "\ufeff{}", '{"a": NaN'],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_no_json_object(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)

    assert name in refused(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": 3},
        {"model_type": None},
        {"hidden_size": "16"},
        {"hidden_size": -16},
        {"hidden_size": 16.5},
        {"vocab_size": True},
        {"num_hidden_layers": {}},
        {"num_hidden_layers": 10**30},
        {"architectures": "LlamaForCausalLM"},
        {"architectures": [3]},
    ],
    ids=str,
)
def test_values_of_a_config_seen_early(folder: Path, changes: dict[str, Any]) -> None:
    edit_json(folder / "config.json", **changes)

    assert "config.json" in refused(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": "two"},
        {"num_attention_heads": 0},
        {"num_attention_heads": 5},
        {"rope_parameters": 3},
        {"rope_parameters": {"rope_type": "spiral"}},
        {"hidden_act": "no such function"},
        {"rms_norm_eps": "small"},
        {"intermediate_size": 25},
        {"model_type": "\ud800"},
        {"torch_dtype": "int99", "dtype": "int99"},
    ],
    ids=ascii,
)
def test_values_of_a_config_seen_by_transformers(folder: Path, changes: dict[str, Any]) -> None:
    edit_json(folder / "config.json", **changes)
    try:
        load_model(folder, device="cpu")
    except ModelError as error:
        assert str(folder) in str(error) and "\n" not in str(error)
        str(error).encode()


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"metadata": {}, "weight_map": []}, "weight_map is a list"),
        ({"metadata": {}, "weight_map": {"a": 3}}, "the file of 'a' is 3"),
        ({"metadata": {}, "weight_map": {"a": "../elsewhere.safetensors"}}, "elsewhere"),
        ({"metadata": {}, "weight_map": {"a": "/etc/passwd"}}, "passwd"),
        ({"metadata": {}, "weight_map": {"a": "n" * 5000}}, "not there"),
        ({"metadata": {}, "weight_map": {}}, "it names none"),
        ({"weight_map": {"a": "b"}}, "no metadata"),
        ({"metadata": {}}, "weight_map is a NoneType"),
    ],
    ids=range(8),
)
def test_shard_indexes(folder: Path, index: dict[str, Any], says: str) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    message = refused(folder)

    assert "model.safetensors.index.json" in message and says in message


def test_two_shards_with_one_tensor(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    shutil.copyfile(folder / "a.safetensors", folder / "b.safetensors")
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "a.safetensors", NORM: "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    assert "both hold the tensor" in refused(folder)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../../elsewhere", b"a b c", b".", b"x" * 5000], ids=range(6))
def test_references_of_the_hub_cache(llama_folder: Path, hub_cache: Path, content: bytes) -> None:
    put_in_hub_cache(hub_cache, "org/model", {"main": llama_folder, "good": llama_folder})
    (hub_cache / "models--org--model" / "refs" / "main").write_bytes(content)

    assert os.path.join("refs", "main") in refused("org/model")
    assert "good" in cached_revisions("org/model")
    load_model("org/model@good", device="cpu")


def test_an_index_in_the_hub_cache_that_is_no_json(folder: Path, hub_cache: Path) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text("[[[")
    put_in_hub_cache(hub_cache, "org/model", {"main": folder})

    assert "model.safetensors.index.json" in refused("org/model")


@pytest.mark.parametrize(
    "spec",
    ["n" * 5000, "org/" + "n" * 5000, "/" + "n" * 5000, "n" * 5000 + ".gguf", "/none/a\0b", "a\x1bb/c", "org/\ud800"],
    ids=range(7),
)
def test_names_that_no_file_can_have(spec: str) -> None:
    for refuse in (check_spec, load_model):
        with pytest.raises((UsageError, ModelError)) as caught:
            refuse(spec)
        assert len(str(caught.value)) < 700 and str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["", "{}", '{"model": 3}', "[" * 50_000], ids=["empty", "bare", "odd", "deep"])
def test_damaged_tokenizers(folder: Path, text: str) -> None:
    (folder / "tokenizer.json").write_text(text)

    assert str(folder / "tokenizer.json") in refused(folder)


@pytest.mark.parametrize("name", ["special_tokens_map.json", "added_tokens.json", "generation_config.json"])
@pytest.mark.parametrize("text", ["", "[]", "[" * 50_000, '{"a": ' + "9" * 5000 + "}"], ids=range(4))
def test_damaged_settings_beside_the_model(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)

    assert str(folder / name) in refused(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"peft_type": 3, "base_model_name_or_path": 5}', "[" * 100_000])
def test_damaged_adapter_settings(folder: Path, tmp_path: Path, text: str) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(text)
    shutil.copyfile(folder / "model.safetensors", adapter / "adapter_model.safetensors")

    assert "adapter_config.json" in refused(adapter)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"r": 0}, "r is 0"),
        ({"r": "8"}, "r is '8'"),
        ({"lora_alpha": None}, "lora_alpha is None"),
        ({"lora_alpha": "NaN"}, "lora_alpha is 'NaN'"),
        ({"lora_alpha": float("inf")}, "lora_alpha is inf"),
        ({"lora_alpha": 10**400}, "lora_alpha is 1000"),
        ({"rank_pattern": {"q_proj": 0}}, "rank_pattern.q_proj is 0"),
        ({"alpha_pattern": {"q_proj": True}}, "alpha_pattern.q_proj is True"),
        ({"target_modules": "(("}, "no regular expression"),
    ],
)
def test_settings_of_an_adapter_are_refused_before_its_base_loads(
    folder: Path, tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(folder), "r": 2, "lora_alpha": 4}
    (adapter / "adapter_config.json").write_text(json.dumps(settings | changes))
    shutil.copyfile(folder / "model.safetensors", adapter / "adapter_model.safetensors")

    assert says in refused(adapter)


@pytest.mark.parametrize("name", ["chat_template.jinja", "generation_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("kind", ["link", "ring", "pipe", "folder"])
def test_what_is_there_and_is_no_file_is_not_taken_for_absent(folder: Path, name: str, kind: str) -> None:
    """The blob of a link may be gone from a cache: the model would be another one without a word."""
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "ring" else "gone")

    assert str(path) in refused(folder)


def test_a_base_of_the_rotation_that_is_stated_twice(folder: Path) -> None:
    edit_json(folder / "config.json", rope_theta=5e5, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    assert "rope_theta is 500000.0 and rope_parameters.rope_theta is 10000.0" in refused(folder)

    edit_json(folder / "config.json", rope_theta=1e4)
    load_model(str(folder), device="cpu")


def test_a_tokenizer_that_fails_at_its_first_text(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert "transformers cannot load the tokenizer" in refused(folder, early=False)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_pointers_of_git_lfs_in_place_of_files(folder: Path, name: str) -> None:
    """What a clone without ``git lfs`` leaves."""
    (folder / name).write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n")

    assert f"{folder / name} is the pointer that Git LFS keeps" in refused(folder)


def test_a_pointer_of_git_lfs_in_place_of_a_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")

    assert "is the pointer that Git LFS keeps" in refused(tmp_path / "m.gguf")
