"""Two folders have one fingerprint where they are one model, and two where anything changes what it answers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.models import load_model
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.loading.identity import spec_identity as identity
from tests.models.pretrained import pretrained
from tests.models.small_models import edit_json, put_in_hub_cache


@pytest.fixture
def copy(llama_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(llama_folder, tmp_path / "elsewhere")


def fingerprint(folder: Path) -> str:
    return load_model(folder, device="cpu").fingerprint


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", {"rope_parameters": {"rope_type": "default", "rope_theta": 20.0}}),
        ("config.json", {"rms_norm_eps": 0.5}),
        ("config.json", {"hidden_act": "gelu"}),
        ("generation_config.json", {"eos_token_id": [2, 99]}),
        ("tokenizer_config.json", {"add_prefix_space": True, "eos_token": "a"}),
        ("tokenizer_config.json", {"split_special_tokens": True}),
    ],
)
def test_what_changes_an_answer_changes_it(llama_folder: Path, copy: Path, file: str, changes: dict[str, Any]) -> None:
    before = identity.model_identity(str(copy))
    edit_json(copy / file, **changes)

    assert fingerprint(copy) != fingerprint(llama_folder)
    identity.forget()
    assert identity.model_identity(str(copy)) != before


def test_the_chat_template_changes_it(llama_folder: Path, copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("{{ messages }}")

    assert fingerprint(copy) != fingerprint(llama_folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"transformers_version": "4.1"},
        {"_name_or_path": "org/other"},
        {"dtype": "bfloat16"},
        {"architectures": None},
        {"attention_dropout": 0.0},
        {"use_cache": False},
    ],
)
def test_what_changes_nothing_does_not(llama_folder: Path, copy: Path, changes: dict[str, Any]) -> None:
    edit_json(copy / "config.json", **changes)

    assert fingerprint(copy) == fingerprint(llama_folder)


def test_memory_and_disk_agree(llama_folder: Path, tmp_path: Path) -> None:
    model = load_model(llama_folder, device="cpu")
    model.module.save_pretrained(tmp_path / "saved")
    model.tokenizer.save_pretrained(tmp_path / "saved")

    in_memory = LanguageModel(model.module, model.tokenizer, name="x").fingerprint

    assert in_memory == model.fingerprint == fingerprint(tmp_path / "saved")


def test_a_folder_and_its_cached_twin_are_one_model(llama_folder: Path, hub_cache: Path) -> None:
    put_in_hub_cache(hub_cache, "org/twin", {"main": llama_folder})
    identity.forget()

    assert fingerprint(Path(llama_folder)) == load_model("org/twin", device="cpu").fingerprint
    assert identity.model_identity("org/twin") == identity.model_identity(str(llama_folder))


def test_resuming_sees_the_base_of_an_adapter(llama_folder: Path, copy: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    from tests.models.small_models import small_llama

    adapter = tmp_path / "adapter"
    get_peft_model(pretrained(small_llama()), LoraConfig(target_modules=["q_proj"])).save_pretrained(str(adapter))
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(copy))
    before = identity.model_identity(str(adapter))

    edit_json(copy / "config.json", rms_norm_eps=0.5)
    identity.forget()

    assert identity.model_identity(str(adapter)) != before


def test_the_scale_of_an_adapter_is_in_it(llama_folder: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    from tests.models.small_models import small_llama

    adapter, settings = tmp_path / "adapter", LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    get_peft_model(pretrained(small_llama()), settings).save_pretrained(str(adapter))
    seen = set()
    for changes in ({"lora_alpha": 8}, {"lora_alpha": 16}, {"use_rslora": True}, {"alpha_pattern": {"q_proj": 4}}):
        edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(llama_folder), **changes)
        identity.forget()
        seen.add((fingerprint(adapter), identity.model_identity(str(adapter))))

    assert len({one for one, _ in seen}) == len({other for _, other in seen}) == 4


@pytest.mark.parametrize(
    ("name", "own_code", "counts"),
    [
        ("optimizer.bin", False, False),
        ("original/consolidated.00.safetensors", False, False),
        ("train.json", False, False),
        ("model-00001-of-00002.safetensors", False, False),
        ("vocabulary.dat", True, True),
        ("model.safetensors", False, True),
    ],
)
def test_large_files_count_where_a_load_can_read_them(
    copy: Path, monkeypatch: pytest.MonkeyPatch, name: str, own_code: bool, counts: bool
) -> None:
    """Others are not even opened: some take half a minute."""
    monkeypatch.setattr(identity, "_SETTINGS", 20_000)
    if own_code:
        edit_json(copy / "config.json", auto_map={"AutoTokenizer": "own.Own"})
    (copy / name).parent.mkdir(exist_ok=True)
    seen, content = set(), (copy / name).read_bytes() if (copy / name).exists() else b"x" * 200_000
    assert len(content) > 20_000
    for end in (b"\1", b"\2"):
        (copy / name).write_bytes(content[:-1] + end)
        identity.forget()
        seen.add(identity.model_identity(str(copy)))

    assert (len(seen) == 2) == counts
    (copy / "added_tokens.json").write_text("{}")
    identity.forget()
    assert identity.model_identity(str(copy)) not in seen


def test_a_large_adapter_counts(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from peft import LoraConfig, get_peft_model

    from tests.models.small_models import small_llama

    monkeypatch.setattr(identity, "_SETTINGS", 10)
    adapter = tmp_path / "adapter"
    get_peft_model(pretrained(small_llama()), LoraConfig(target_modules=["q_proj"])).save_pretrained(str(adapter))
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(copy))
    seen = set()
    for folder, file in ((adapter, "adapter_model.safetensors"), (copy, "model.safetensors"), (copy, None)):
        identity.forget()
        seen.add(identity.model_identity(str(adapter)))
        if file is not None:
            content = (folder / file).read_bytes()
            (folder / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert len(seen) == 3


def test_what_is_no_model_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    found = set()
    for number in range(2):
        (tmp_path / "deep" / "notes").write_text(str(number))
        identity.forget()
        found.add(identity.model_identity(str(tmp_path)))

    assert len(found) == 1


def test_two_models_of_equal_weights_are_two_models(llama_folder: Path, copy: Path) -> None:
    edit_json(copy / "config.json", rope_parameters={"rope_type": "default", "rope_theta": 20.0})
    one, other = load_model(llama_folder, device="cpu"), load_model(copy, device="cpu")
    ids = torch.arange(3, 40)[None]

    assert not torch.allclose(one.module(ids).logits, other.module(ids).logits)
    assert one.fingerprint != other.fingerprint


def test_the_cache_of_a_process_sees_an_edited_folder(copy: Path) -> None:
    from lm_audit.models import ModelCache

    cache = ModelCache(1 << 30)
    first = cache.get(copy, device="cpu")
    assert cache.get(copy, device="cpu") is first

    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 0.25}))

    assert cache.get(copy, device="cpu").fingerprint != first.fingerprint


def test_a_file_replaced_within_its_modification_time_is_another(copy: Path) -> None:
    """As in images and archives, which give every file one time."""
    file = copy / "model.safetensors"
    before, times = fingerprint(copy), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=times)

    assert fingerprint(copy) != before


@pytest.mark.parametrize("name", ["large.gguf", "large.jsonl", "no real one.safetensors"])
def test_one_byte_of_a_large_file_makes_it_another_wherever_it_lies(tmp_path: Path, name: str) -> None:
    """With its size and time as they were; and a copy of it at another time is the same."""
    file = tmp_path / name
    content = bytearray(b"GGUF" + b"a" * (9 << 20))
    states = []
    for place in (0, len(content) // 3 + 12_345, None):
        if place is not None:
            content[place] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(1, 1) if place is not None else (7, 7))
        identity.forget()
        states.append((identity.file_state(str(file)), identity.content_state(str(file))))

    assert states[0][0] != states[1][0] and states[0][1] != states[1][1]
    assert states[1] == states[2]
