"""Training: resumed runs equal uninterrupted ones, and what stops a run says why."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.audits.privacy.stages.config import DpSettings, LoraSettings, StagesConfig, TrainSettings, smoke_config
from lm_audit.audits.privacy.stages.four_stages import METADATA, run_stages
from lm_audit.audits.privacy.stages.run_metadata import read_metadata
from lm_audit.audits.privacy.training.batches import encode_rows, pad
from lm_audit.audits.privacy.training.dp import example_nll, gradient_self_check, train_texts_privately
from lm_audit.audits.privacy.training.dpo import check_first_loss, train_preferences
from lm_audit.audits.privacy.training.loop import run_steps
from lm_audit.audits.privacy.training.own_stages import save_stage
from lm_audit.audits.privacy.training.sft import train_texts
from lm_audit.errors import ModelError, StoreError, UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.models.toy.tiny_text import seeded_text
from lm_audit.models.toy.training import one_thread
from lm_audit.shared.progress import OnProgress
from tests.file_size_limit import file_size_limit

SETTINGS = TrainSettings(epochs=2, lr=2e-3, batch_size=8, warmup_steps=2)
TEXTS = seeded_text(40, 5)
PAIRS = [{"prompt": t[:20], "chosen": t[20:], "rejected": t[20:][::-1]} for t in TEXTS[:16]]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return byte_tokenizer(256)


def small_llama(seed: int = 0) -> CausalModule:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=259,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


class Interrupted(Exception):
    """Stands for a kill at a given step."""


def stop_after(step: int) -> OnProgress:
    def on_progress(done: int, total: int, tokens: int) -> None:
        if done == step:
            raise Interrupted

    return on_progress


def same_weights(a: CausalModule, b: CausalModule) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_sft_resumes_to_the_same_bits(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_audit.audits.privacy.training import sft

    whole, cut = small_llama(), small_llama()
    checkpoint = tmp_path / "sft.pt"
    often = run_steps
    monkeypatch.setattr(sft, "run_steps", lambda *a, **k: often(*a, **k, every=3))
    with one_thread():
        expected = train_texts(whole, tokenizer, TEXTS, SETTINGS, seed=1, stage="sft")
        with pytest.raises(Interrupted):
            train_texts(
                cut, tokenizer, TEXTS, SETTINGS, seed=1, stage="sft", checkpoint=checkpoint, on_progress=stop_after(7)
            )
        fresh = small_llama(seed=9)
        resumed = train_texts(fresh, tokenizer, TEXTS, SETTINGS, seed=1, stage="sft", checkpoint=checkpoint)
    assert resumed.losses == expected.losses
    assert same_weights(whole, fresh)


def test_dpo_starts_at_ln2_and_prefers_the_chosen(tokenizer: Tokenizer) -> None:
    module = small_llama()
    with one_thread():
        progress = train_preferences(
            module, tokenizer, PAIRS, replace(SETTINGS, epochs=4, warmup_steps=0), beta=0.1, seed=0, stage="dpo"
        )
    assert progress.losses[0] == pytest.approx(math.log(2), abs=1e-5)
    assert progress.losses[-1] < 0.6


def test_dpo_with_another_reference_is_refused(tokenizer: Tokenizer) -> None:
    wrong = [(-10.0, -50.0)] * len(PAIRS)
    with pytest.raises(ModelError, match="reference model is not the SFT stage"):
        train_preferences(
            small_llama(), tokenizer, PAIRS, SETTINGS, beta=0.1, seed=0, stage="dpo_no_canary", reference=wrong
        )
    check_first_loss(math.log(2), "dpo")


def test_resumed_dpo_has_the_reference_of_the_first_start(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_audit.audits.privacy.training import dpo

    whole, cut = small_llama(), small_llama()
    often = run_steps
    monkeypatch.setattr(dpo, "run_steps", lambda *a, **k: often(*a, **k, every=1))
    arguments: dict[str, Any] = {"beta": 0.1, "seed": 0, "stage": "dpo"}
    with one_thread():
        train_preferences(whole, tokenizer, PAIRS, SETTINGS, **arguments)
        with pytest.raises(Interrupted):
            train_preferences(
                cut, tokenizer, PAIRS, SETTINGS, **arguments, checkpoint=tmp_path / "d.pt", on_progress=stop_after(2)
            )
        fresh = small_llama()
        train_preferences(fresh, tokenizer, PAIRS, SETTINGS, **arguments, checkpoint=tmp_path / "d.pt")
    assert same_weights(whole, fresh)


def test_nan_loss_stops_with_stage_and_step(tokenizer: Tokenizer) -> None:
    module = small_llama()
    settings = replace(SETTINGS, lr=1e30, clip=1e30, warmup_steps=0)
    with pytest.raises(ModelError, match=r"stage sft: the loss is (nan|inf) at step \d+ .*Lower the lr"):
        train_texts(module, tokenizer, TEXTS, settings, seed=0, stage="sft")


def test_nothing_to_train(tokenizer: Tokenizer) -> None:
    module = small_llama().requires_grad_(False)
    with pytest.raises(ModelError, match="no parameter is trainable"):
        train_texts(module, tokenizer, TEXTS, SETTINGS, seed=0, stage="sft")


def test_full_disk_keeps_the_earlier_checkpoint(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_audit.audits.privacy.training import sft

    checkpoint = tmp_path / "sft.pt"
    often = run_steps
    monkeypatch.setattr(sft, "run_steps", lambda *a, **k: often(*a, **k, every=2))
    with pytest.raises(Interrupted):
        train_texts(
            small_llama(),
            tokenizer,
            TEXTS,
            SETTINGS,
            seed=1,
            stage="sft",
            checkpoint=checkpoint,
            on_progress=stop_after(3),
        )
    before = checkpoint.read_bytes()
    with (
        file_size_limit(20_000),
        pytest.raises(StoreError, match=r"stage sft, step 4: cannot write .*the earlier one is kept"),
    ):
        train_texts(small_llama(), tokenizer, TEXTS, SETTINGS, seed=1, stage="sft", checkpoint=checkpoint)
    assert checkpoint.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["sft.pt"]
    train_texts(small_llama(), tokenizer, TEXTS, SETTINGS, seed=1, stage="sft", checkpoint=checkpoint)


def test_full_disk_leaves_no_half_written_stage(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with file_size_limit(20_000), pytest.raises(StoreError, match="free some disk space"):
        save_stage(small_llama(), tokenizer, tmp_path / "sft")
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_foreign_checkpoints(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "c.pt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(StoreError, match=r"(?s)cannot be read.*delete it"):
        train_texts(small_llama(), tokenizer, TEXTS, SETTINGS, seed=1, stage="sft", checkpoint=path)


def test_private_gradients_are_checked_against_single_examples(tokenizer: Tokenizer) -> None:
    rows = encode_rows(tokenizer, TEXTS[:8], 256)
    assert gradient_self_check(small_llama(), rows) < 1e-4


def test_private_gradients_that_are_no_numbers_give_no_epsilon(tokenizer: Tokenizer) -> None:
    module = small_llama()
    with torch.no_grad():
        list(module.parameters())[-1].fill_(math.nan)
    with pytest.raises(ModelError, match="off by nan"):
        gradient_self_check(module, encode_rows(tokenizer, TEXTS[:4], 256))


def test_a_model_with_wrong_private_gradients_gets_no_epsilon(tokenizer: Tokenizer) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=259, n_positions=256, n_embd=32, n_layer=1, n_head=2))
    with pytest.raises(ModelError, match="epsilon"):
        train_texts_privately(gpt2, tokenizer, TEXTS, SETTINGS, DpSettings(4.0), seed=0)


@pytest.mark.parametrize("epsilon", [math.inf, 4.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_dp_spends_what_was_asked_and_trains(tokenizer: Tokenizer, epsilon: float) -> None:
    module = small_llama()
    before = [p.clone() for p in module.parameters()]
    with one_thread():
        result = train_texts_privately(module, tokenizer, TEXTS, SETTINGS, DpSettings(epsilon), seed=0)
    assert result.delta == pytest.approx(1 / len(TEXTS))
    assert any(not torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    if math.isinf(epsilon):
        assert result.noise_multiplier == 0
        assert result.spent is None
        assert json.dumps(result.to_json(), allow_nan=False)
    else:
        assert result.spent == pytest.approx(epsilon, rel=0.05)
        assert result.noise_multiplier > 0


def test_dp_noise_grows_as_epsilon_shrinks(tokenizer: Tokenizer) -> None:
    from lm_audit.audits.privacy.training.dp import noise_for

    noise = [noise_for(DpSettings(epsilon), 1e-3, 0.02, 100) for epsilon in (math.inf, 4.0, 1.0)]
    assert noise[0] == 0 < noise[1] < noise[2]


@pytest.mark.parametrize("many", [24, pytest.param(len(TEXTS), marks=pytest.mark.slow)])
def test_dp_resumes_to_the_same_bits(tokenizer: Tokenizer, tmp_path: Path, many: int) -> None:
    whole, fresh = small_llama(), small_llama()
    dp, texts = DpSettings(4.0), TEXTS[:many]
    with one_thread():
        train_texts_privately(whole, tokenizer, texts, SETTINGS, dp, seed=3)
        path = tmp_path / "dp.pt"
        train_texts_privately(small_llama(), tokenizer, texts, SETTINGS, dp, seed=3, checkpoint=path, every=4)
        train_texts_privately(fresh, tokenizer, texts, SETTINGS, dp, seed=3, checkpoint=path, every=4)
    assert path.is_file()
    assert same_weights(whole, fresh)


def test_padding_is_no_part_of_the_private_loss(tokenizer: Tokenizer) -> None:
    module = small_llama().eval()
    rows = encode_rows(tokenizer, [TEXTS[0], TEXTS[0] + " and a good deal more of it"], 256)
    with torch.no_grad():
        together = example_nll(module, *pad(rows, torch.device("cpu")))
        alone = example_nll(module, *pad(rows[:1], torch.device("cpu")))
    assert float(together[0]) == pytest.approx(float(alone[0]), abs=1e-5)


def test_stages_are_not_trained_twice(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    config, stages = smoke_stages
    before = {path: path.stat().st_mtime_ns for folder in stages.values() for path in folder.iterdir()}
    said: list[str] = []
    assert run_stages(config, on_message=said.append) == stages
    assert {path: path.stat().st_mtime_ns for folder in stages.values() for path in folder.iterdir()} == before
    assert said == [f"{stage}: complete" for stage in stages]


def test_metadata_of_a_run(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    config, _ = smoke_stages
    entries, damaged = read_metadata(config.folder() / METADATA)
    assert not damaged
    assert [entry["type"] for entry in entries] == ["sft_training", "dpo_training", "dpo_training"]
    for entry in entries:
        assert entry["config"] == json.loads(json.dumps(config.to_json()))
        assert {"seed", "manifest_sha256", "files", "first_loss", "last_loss", "steps", "versions"} <= entry.keys()


def test_a_folder_belongs_to_one_config(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    config, _ = smoke_stages
    with pytest.raises(UsageError, match=r"another config \(differs in seed\)"):
        run_stages(replace(config, seed=5))


def test_config_round_trip_and_bad_values() -> None:
    config = smoke_config(dp=DpSettings(math.inf), lora=LoraSettings(r=4))
    assert StagesConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert replace(config, seed=1).sha256 != config.sha256
    with pytest.raises(UsageError, match="no config of the privacy audit: it has no field 'sead'; did you mean 'seed'"):
        StagesConfig.from_json({"sead": 1})
    for changes, message in (
        ({"family": "x"}, "family"),
        ({"trainer": "x"}, "trainer"),
        ({"assignment": "x"}, "assignment"),
        ({"dp": DpSettings(0.0)}, "epsilon"),
        ({"dp": DpSettings(1.0), "trainer": "trl"}, "own loop"),
    ):
        with pytest.raises(UsageError, match=message):
            smoke_config(**changes)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"sft": 3}, "sft must be an object with some of epochs, lr, .* got 3"),
        ({"dpo": None}, "dpo must be an object"),
        ({"tiny": []}, "tiny must be an object"),
        ({"lora": "r=8"}, "lora must be an object with some of r, alpha"),
        ({"dpo": {"epoch": 2}}, "dpo has no setting 'epoch'; did you mean 'epochs'"),
        ({"lora": {"rank": 2}}, "lora has no setting 'rank'; there are r, alpha"),
        ({"dp": {"delta": 1e-5}}, "dp needs epsilon"),
        ({"sft": {"lr": "fast"}}, "sft.lr"),
        ({"documents_path": {"a": 1}}, "documents_path must be the name of a file"),
    ],
)
def test_a_setting_of_the_wrong_form_is_named(record: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        StagesConfig.from_json(record)
    assert "__init__" not in str(caught.value) and "attribute" not in str(caught.value)


def test_settings_within_a_setting_that_are_left_out_are_the_defaults() -> None:
    config = StagesConfig.from_json({"sft": {"epochs": 7}, "lora": {"targets": ["o_proj"]}})
    assert config.sft == replace(StagesConfig().sft, epochs=7)
    assert config.lora == replace(LoraSettings(), targets=("o_proj",)) and config.dp is None


def test_dpo_needs_the_sft_stage(smoke_stages: tuple[StagesConfig, dict[str, Path]], tmp_path: Path) -> None:
    from lm_audit.audits.privacy.stages.stage_inputs import stage_data
    from lm_audit.audits.privacy.training.own_stages import own_dpo

    config, _ = smoke_stages
    assert stage_data("sft", tmp_path).name == "corpus.jsonl"
    with pytest.raises(ModelError, match="no such folder"):
        own_dpo("dpo_no_canary", config, PAIRS, tmp_path / "sft", tmp_path / "out", tmp_path / "c.pt")
