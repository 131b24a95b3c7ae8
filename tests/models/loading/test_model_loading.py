"""Folders, dtypes, mapped weights and fingerprints, on a small random Llama."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest
import torch

from lm_audit.models import load_model, load_tokenizer
from lm_audit.models.loading.identity.fingerprint import module_fingerprint
from tests.models.pretrained import pretrained, pretrained_tokenizer
from tests.models.small_models import save_small_llama, small_llama


def test_folder_gives_the_saved_weights(llama_folder: Path, own_cache: Path) -> None:
    model = load_model(llama_folder, device="cpu")

    assert model.name == "small-llama"
    assert model.dtype == torch.float32
    assert model.device.type == "cpu"
    ours, saved = model.module.state_dict(), small_llama().state_dict()
    assert ours.keys() == saved.keys()
    assert all(torch.equal(ours[name], saved[name]) for name in saved)


def test_model_is_ready_to_answer_not_to_train(llama_folder: Path, own_cache: Path) -> None:
    module = load_model(llama_folder, device="cpu").module

    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_tokenizer_alone(llama_folder: Path) -> None:
    assert load_tokenizer(llama_folder)("ab").input_ids == [1, ord("a") + 3, ord("b") + 3]


def test_shards(tmp_path: Path, own_cache: Path, llama_folder: Path) -> None:
    sharded = tmp_path / "sharded"
    shutil.copytree(llama_folder, sharded)
    (sharded / "model.safetensors").unlink()
    pretrained(small_llama()).save_pretrained(sharded, max_shard_size="20KB")
    assert len(list(sharded.glob("*.safetensors"))) > 1

    whole, parts = load_model(llama_folder, device="cpu"), load_model(sharded, device="cpu")

    ids = torch.arange(3, 20)[None]
    assert torch.equal(whole.module(ids).logits, parts.module(ids).logits)
    assert whole.fingerprint == parts.fingerprint


class TestDtype:
    @pytest.fixture
    def half(self, tmp_path: Path) -> Path:
        return save_small_llama(tmp_path / "half", dtype="bfloat16")

    def test_auto_on_cpu_is_float32(self, half: Path, own_cache: Path) -> None:
        model = load_model(half, device="cpu")

        assert model.dtype == torch.float32
        want = small_llama().to(torch.bfloat16).float().state_dict()
        assert all(torch.equal(value, want[name]) for name, value in model.module.state_dict().items())

    @pytest.mark.parametrize("name", ["bfloat16", "bf16", torch.bfloat16])
    def test_the_named_one_binds(self, half: Path, own_cache: Path, name: object) -> None:
        model = load_model(half, device="cpu", dtype=name)

        assert {parameter.dtype for parameter in model.module.parameters()} == {torch.bfloat16}
        assert not (own_cache / "converted").exists()

    @pytest.mark.parametrize("name", ["float16", "float64"])
    def test_other_dtypes_are_converted(self, half: Path, own_cache: Path, name: str) -> None:
        assert load_model(half, device="cpu", dtype=name).dtype == getattr(torch, name)

    def test_conversion_is_made_once(self, half: Path, own_cache: Path) -> None:
        load_model(half, device="cpu")
        (made,) = (own_cache / "converted").glob("*/*.safetensors")
        before = made.stat().st_mtime_ns

        load_model(half, device="cpu")

        assert made.stat().st_mtime_ns == before

    def test_the_checkpoint_stays_as_it_was(self, half: Path, own_cache: Path) -> None:
        before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in half.iterdir()}

        load_model(half, device="cpu")

        assert before == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in half.iterdir()}


class TestFingerprint:
    def test_of_files_equals_that_of_memory(self, llama_folder: Path, own_cache: Path) -> None:
        model = load_model(llama_folder, device="cpu")

        assert model.fingerprint == module_fingerprint(model.module, model.tokenizer)
        assert re.fullmatch(r"[0-9a-f]{32}", model.fingerprint)

    def test_padding_does_not_change_it(self, llama_folder: Path, own_cache: Path) -> None:
        model = load_model(llama_folder, device="cpu")

        model.tokenizer(["a", "bcd"], padding=True, truncation=True, max_length=3)

        assert module_fingerprint(model.module, model.tokenizer) == model.fingerprint

    def test_tells_weights_apart(self, llama_folder: Path, tmp_path: Path, own_cache: Path) -> None:
        other = save_small_llama(tmp_path / "small-llama", seed=1)

        assert load_model(other, device="cpu").fingerprint != load_model(llama_folder, device="cpu").fingerprint

    def test_tells_tokenizers_apart(self, llama_folder: Path, tmp_path: Path, own_cache: Path) -> None:
        other = Path(shutil.copytree(llama_folder, tmp_path / "other"))
        tokenizer = pretrained_tokenizer(load_tokenizer(other))
        tokenizer.chat_template = "{{ messages }}"
        tokenizer.save_pretrained(other)

        assert load_model(other, device="cpu").fingerprint != load_model(llama_folder, device="cpu").fingerprint

    def test_a_changed_file_is_read_again(self, llama_folder: Path, tmp_path: Path, own_cache: Path) -> None:
        folder = Path(shutil.copytree(llama_folder, tmp_path / "copy"))
        before = load_model(folder, device="cpu").fingerprint

        save_small_llama(folder, seed=1)

        assert load_model(folder, device="cpu").fingerprint != before


def mapped_and_copied(folder: Path) -> tuple[int, int]:
    """Bytes of safetensors files under ``folder`` in this process: mapped from the file, and copied by the process."""
    mapped, copied, inside = 0, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(".safetensors") and str(folder) in line
        elif inside and line.startswith("Rss:"):
            mapped += 1024 * int(line.split()[1])
        elif inside and line.startswith("Anonymous:"):
            copied += 1024 * int(line.split()[1])
    return mapped, copied


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc/self/smaps (Linux)")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_pages_of_the_file_that_processes_share(tmp_path: Path, own_cache: Path, dtype: str) -> None:
    folder = save_small_llama(tmp_path / "wide", dtype=dtype, hidden_size=256, intermediate_size=1024)

    module = load_model(folder, device="cpu").module
    touched = sum(float(parameter.double().sum()) for parameter in module.parameters())

    mapped, copied = mapped_and_copied(tmp_path)
    assert touched != 0
    assert mapped >= 4 * sum(parameter.numel() for parameter in module.parameters())
    assert copied == 0


@pytest.mark.parametrize(("kind", "encoder", "decoder"), [("Bart", 1, 3), ("Bart", 3, 1), ("Pegasus", 1, 2)])
def test_a_decoder_loaded_alone_counts_its_own_layers(
    llama_folder: Path, tmp_path: Path, own_cache: Path, kind: str, encoder: int, decoder: int
) -> None:
    import transformers

    shape = {"vocab_size": 259, "d_model": 16, "decoder_attention_heads": 2, "decoder_ffn_dim": 32}
    alone = {"is_decoder": True, "is_encoder_decoder": False, "pad_token_id": 0, "max_position_embeddings": 64}
    config = getattr(transformers, f"{kind}Config")(
        **shape, **alone, encoder_layers=encoder, decoder_layers=decoder, init_std=0.3
    )
    folder = Path(shutil.copytree(llama_folder, tmp_path / "model"))
    getattr(transformers, f"{kind}ForCausalLM")(config).save_pretrained(folder)
    model = load_model(folder, device="cpu", dtype="float32")
    prompts = [list(range(40, 60)), [*range(40, 60), 70], [*range(40, 58), 71, 72]]
    done = model.complete(prompts, [[80, 81]] * 3, max_new_tokens=4)
    each = [model.complete([prompt], [[80, 81]], max_new_tokens=4)[0] for prompt in prompts]
    assert [answer.text for answer in done] == [answer.text for answer in each]
