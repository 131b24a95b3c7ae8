"""A folder with a PEFT adapter: its base is found as any spec is, and the two are merged."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import check_spec, load_model
from tests.models.pretrained import pretrained
from tests.models.small_models import edit_json, put_in_hub_cache, small_llama

IDS = torch.arange(3, 20)[None]


def adapted() -> Any:
    """The small Llama with a LoRA adapter whose weights all differ from zero."""
    from peft import LoraConfig, get_peft_model

    module = get_peft_model(pretrained(small_llama()), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    torch.manual_seed(5)
    for name, parameter in module.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return module.eval()


@pytest.fixture
def adapter(llama_folder: Path, tmp_path: Path, own_cache: Path) -> Path:
    folder = tmp_path / "my-adapter"
    adapted().save_pretrained(folder)
    edit_json(folder / "adapter_config.json", base_model_name_or_path=str(llama_folder))
    return folder


def test_merged_logits_equal_peft_s_own(adapter: Path, llama_folder: Path) -> None:
    model = load_model(adapter, device="cpu")

    with torch.no_grad():
        merged, wrapped, base = model.module(IDS).logits, adapted()(IDS).logits, small_llama()(IDS).logits
    torch.testing.assert_close(merged, wrapped, rtol=1e-5, atol=1e-5)
    assert (merged - base).abs().max() > 0.1
    assert model.name == "my-adapter"
    assert type(model.module).__name__ == "LlamaForCausalLM"


def test_merging_leaves_the_base_file_alone(adapter: Path, llama_folder: Path) -> None:
    before = hashlib.sha256((llama_folder / "model.safetensors").read_bytes()).hexdigest()

    load_model(adapter, device="cpu")

    assert hashlib.sha256((llama_folder / "model.safetensors").read_bytes()).hexdigest() == before


def test_fingerprint_covers_the_adapter(adapter: Path, llama_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(adapter, tmp_path / "copy"))

    assert load_model(copy, device="cpu").fingerprint == load_model(adapter, device="cpu").fingerprint
    assert load_model(adapter, device="cpu").fingerprint != load_model(llama_folder, device="cpu").fingerprint


def test_fingerprint_covers_the_adapter_s_scale(adapter: Path) -> None:
    before = load_model(adapter, device="cpu").fingerprint

    edit_json(adapter / "adapter_config.json", lora_alpha=64)

    assert load_model(adapter, device="cpu").fingerprint != before


def test_base_as_a_hub_id_with_revision(adapter: Path, llama_folder: Path, hub_cache: Path) -> None:
    want = load_model(adapter, device="cpu").module(IDS).logits
    put_in_hub_cache(hub_cache, "org/base", {"v2": llama_folder})
    edit_json(adapter / "adapter_config.json", base_model_name_or_path="org/base", revision="v2")

    assert torch.equal(load_model(adapter, device="cpu").module(IDS).logits, want)


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("/no/such/base", "no such folder"),
        ("openai:m@http://127.0.0.1:1/v1", "its base openai:m@.* is behind a server; expected a model whose weights"),
        (None, "base_model_name_or_path is None"),
        ("org/absent", "org/absent is not in the hub cache"),
    ],
)
def test_missing_base(adapter: Path, hub_cache: Path, base: str | None, says: str) -> None:
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=base)

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=says):
            refuse(adapter)


@pytest.mark.parametrize("task", ["SEQ_CLS", "TOKEN_CLS", "FEATURE_EXTRACTION", "nonsense", 3])
def test_an_adapter_for_another_task_is_refused(adapter: Path, task: object) -> None:
    edit_json(adapter / "adapter_config.json", task_type=task)

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=f"task_type is {task!r}.*another head"):
            refuse(adapter)


@pytest.mark.parametrize("kind", ["SUPER_LORA", "", 7])
def test_an_unknown_kind_of_adapter_is_refused_with_the_kinds_there_are(adapter: Path, kind: object) -> None:
    edit_json(adapter / "adapter_config.json", peft_type=kind)

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match=f"peft_type is {kind!r}.*does not know; it knows .*LORA"):
            refuse(adapter)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"peft_type": "XLORA"}, r"a mixture of adapters \(XLORA\) acts otherwise on each text"),
        ({"peft_type": "POLY"}, r"a mixture of adapters \(POLY\)"),
        ({"arrow_config": {"top_k": 3}}, r"a mixture of adapters \(LORA with arrow_config\)"),
        (
            {"alora_invocation_tokens": [5, 9]},
            r"alora_invocation_tokens is \[5, 9\]: .* acts behind those tokens alone",
        ),
    ],
)
def test_adapters_that_hang_on_the_text_are_refused(adapter: Path, changes: dict[str, Any], says: str) -> None:
    edit_json(adapter / "adapter_config.json", **changes)

    with pytest.raises(ModelError, match=says):
        check_spec(adapter)


def test_adapters_without_a_task_are_taken(adapter: Path) -> None:
    edit_json(adapter / "adapter_config.json", task_type=None, peft_type="lora")
    check_spec(adapter)


def test_pickled_adapter(adapter: Path) -> None:
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")

    for refuse in (check_spec, load_model):
        with pytest.raises(ModelError, match="pickle"):
            refuse(adapter)


def test_adapter_of_another_shape_is_one_line(adapter: Path, llama_folder: Path, tmp_path: Path) -> None:
    from tests.models.small_models import save_small_llama

    other = save_small_llama(tmp_path / "other", hidden_size=32)
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(other))

    with pytest.raises(ModelError, match="size mismatch") as caught:
        load_model(adapter)
    assert "\n" not in str(caught.value)
