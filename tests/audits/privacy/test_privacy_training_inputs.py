"""What a stage is trained from: dropout off in every architecture, rows that fit, targets that exist, causal models."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lm_audit.audits.privacy.data.corpus import read_texts
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.stages.config import LoraSettings, TrainSettings, smoke_config
from lm_audit.audits.privacy.stages.four_stages import run_stages
from lm_audit.audits.privacy.training.adapters import lora_config
from lm_audit.audits.privacy.training.batches import encode_rows
from lm_audit.audits.privacy.training.dpo import encode_pairs, train_preferences
from lm_audit.audits.privacy.training.dropout import without_dropout
from lm_audit.audits.privacy.training.fit_for_trl import require_copied, require_same_head
from lm_audit.audits.privacy.training.own_stages import trainable_model
from lm_audit.audits.privacy.training.sft import train_texts
from lm_audit.audits.privacy.training.trl_stages import disk_told
from lm_audit.errors import ContextError, DataError, ModelError, StoreError, UsageError
from lm_audit.models.checks.causality import prove_causal
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.toy.training import one_thread
from tests.audits.privacy.test_privacy_training import PAIRS, SETTINGS, TEXTS
from tests.models.architectures import architecture
from tests.models.small_models import edit_json, save_small_llama, small_llama

SHORT = {"prompt": "p", "chosen": "yes", "rejected": "no"}
SMALL = {"vocab_size": 259, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
WIDE = SMALL | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
ARCHITECTURES = {
    "llama-attention": ("Llama", WIDE | {"attention_dropout": 0.4}),
    "qwen2-attention": ("Qwen2", WIDE | {"attention_dropout": 0.4, "num_key_value_heads": 2}),
    "gpt-neox": ("GPTNeoX", WIDE | {"attention_dropout": 0.3, "hidden_dropout": 0.3}),
    "opt-layerdrop": (
        "OPT",
        SMALL
        | {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "ffn_dim": 48,
            "word_embed_proj_dim": 32,
        }
        | {"dropout": 0.3, "attention_dropout": 0.2, "layerdrop": 0.3},
    ),
    "falcon": (
        "Falcon",
        SMALL
        | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"hidden_dropout": 0.3, "attention_dropout": 0.3},
    ),
    "gpt2": ("GPT2", SMALL | {"n_embd": 32, "n_layer": 2, "n_head": 2, "resid_pdrop": 0.3, "embd_pdrop": 0.2}),
    "bloom": ("Bloom", SMALL | {"hidden_size": 32, "n_layer": 2, "n_head": 2, "hidden_dropout": 0.3}),
    "phi": ("Phi", WIDE | {"resid_pdrop": 0.3, "embd_pdrop": 0.1, "attention_dropout": 0.2}),
    "mixtral-jitter": (
        "Mixtral",
        WIDE | {"num_key_value_heads": 2, "num_local_experts": 2, "attention_dropout": 0.2, "router_jitter_noise": 0.5},
    ),
}


def small(name: str) -> Any:
    import transformers

    kind, settings = ARCHITECTURES[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**settings)
    build: Callable[..., Any] = transformers.AutoModelForCausalLM.from_config
    return build(config)


def answers(module: nn.Module) -> list[Tensor]:
    """Logits of one text in training mode under three seeds."""
    module.train()
    found = []
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        with torch.no_grad():
            found.append(module(input_ids=torch.arange(20, 40)[None], use_cache=False).logits)
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_dropout_is_left_and_all_of_it_comes_back(name: str) -> None:
    module = small(name)
    first, *others = answers(module)
    assert any(not torch.allclose(first, other, atol=1e-4) for other in others)
    before = module.config.to_dict()
    with without_dropout(module):
        first, *others = answers(module)
        assert all(torch.allclose(first, other, atol=1e-5) for other in others)
    assert module.config.to_dict() == before
    first, *others = answers(module)
    assert any(not torch.allclose(first, other, atol=1e-4) for other in others)


@pytest.mark.parametrize("name", ["llama-attention", "opt-layerdrop"])
def test_dpo_starts_at_ln2_where_dropout_is_a_number(name: str) -> None:
    with one_thread():
        progress = train_preferences(
            small(name), byte_tokenizer(256), PAIRS, SETTINGS, beta=0.1, seed=0, stage="dpo_no_canary"
        )
    assert progress.losses[0] == pytest.approx(math.log(2), abs=1e-4)


def test_sft_does_not_hang_on_dropout_in_the_config() -> None:
    losses = []
    for dropout in (0.0, 0.4):
        torch.manual_seed(0)
        module = small("llama-attention")
        for layer in module.model.layers:
            layer.self_attn.attention_dropout = dropout
        with one_thread():
            losses.append(train_texts(module, byte_tokenizer(256), TEXTS, SETTINGS, seed=1, stage="sft").losses)
    assert losses[0] == losses[1]


def test_noise_that_nothing_switches_off_is_named() -> None:
    module = small("gpt2")
    module.lm_head.register_forward_hook(lambda layer, inputs, output: output + torch.randn_like(output))
    with pytest.raises(ModelError, match="random in training mode even without dropout"), without_dropout(module):
        pass


def test_an_adapter_keeps_the_dropout_that_was_asked_for() -> None:
    from peft import get_peft_model

    module: Any = get_peft_model(
        small("llama-attention"), lora_config(small("llama-attention"), LoraSettings(dropout=0.3))
    )
    with without_dropout(module, keep=("lora_",)):
        kept = [layer.p for name, layer in module.named_modules() if isinstance(layer, torch.nn.Dropout)]
        assert kept
        assert set(kept) == {0.3}
        assert all(layer.self_attn.attention_dropout == 0 for layer in module.base_model.model.model.layers)


def test_rows_longer_than_the_context_say_what_to_set() -> None:
    module = small("gpt2")
    module.config.n_positions = 128
    long = [*TEXTS[:3], "a" * 140]
    with pytest.raises(
        ContextError, match=r"row 4: .* 142 tokens, and GPT2LMHeadModel reads at most 128 .*--sft max_length=128"
    ):
        train_texts(module, byte_tokenizer(256), long, SETTINGS, seed=0, stage="sft")
    pairs = [*PAIRS[:1], {"prompt": "b" * 130, "chosen": "yes", "rejected": "no"}]
    with pytest.raises(DataError, match=r"row 2: .*preference pair.* reads at most 128 .*--dpo max_length=128"):
        train_preferences(
            module, byte_tokenizer(256), pairs, replace(SETTINGS), beta=0.1, seed=0, stage="dpo_no_canary"
        )
    train_texts(module, byte_tokenizer(256), long, replace(SETTINGS, max_length=128), seed=0, stage="sft")


@pytest.mark.parametrize(
    ("name", "targets"), [("gpt2", "c_attn"), ("gpt-neox", "query_key_value"), ("falcon", "query_key_value")]
)
def test_lora_names_the_layers_that_a_model_has(name: str, targets: str) -> None:
    module = small(name)
    with pytest.raises(UsageError, match=rf"--lora: .* has no layer named q_proj, v_proj; .*{targets}.*targets="):
        lora_config(module, LoraSettings())
    assert lora_config(module, LoraSettings(targets=(targets,))).target_modules == {targets}


@pytest.mark.parametrize("adapted", [False, True])
def test_noise_that_counts_in_evaluation_too(adapted: bool) -> None:
    """Left out of training alone, SFT trained another model than was measured, and DPO blamed its reference."""
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM, PhimoeConfig

    build: Any = AutoModelForCausalLM.from_config
    settings: Any = WIDE | {"num_local_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 2}
    torch.manual_seed(0)
    module = build(PhimoeConfig(**settings, router_jitter_noise=0.3, initializer_range=0.2)).float()
    if adapted:
        module = get_peft_model(module, lora_config(module, LoraSettings(dropout=0.3)))
    with pytest.raises(ModelError, match=r"computes otherwise in training mode than in evaluation"):
        train_texts(module, byte_tokenizer(256), TEXTS[:4], SETTINGS, seed=0, stage="sft")


def test_layers_that_an_adapter_cannot_reach_are_no_targets() -> None:
    """The stage would have been trained to its end, and its adapter had learnt nothing there."""
    with pytest.raises(UsageError, match=r"MambaForCausalLM reads the weights of its layers dt_proj past any adapter"):
        lora_config(architecture("mamba"), LoraSettings(targets=("in_proj", "dt_proj")))


def test_a_model_that_sees_what_it_predicts_is_not_trained(tmp_path: Path) -> None:
    import transformers

    torch.manual_seed(0)
    settings: dict[str, Any] = WIDE | {"is_decoder": False, "max_position_embeddings": 128}
    bert = transformers.BertLMHeadModel(transformers.BertConfig(**settings))
    bert.save_pretrained(tmp_path)
    byte_tokenizer(128).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="causal"):
        trainable_model(str(tmp_path), "cpu")


@pytest.mark.filterwarnings("ignore")
def test_a_base_with_an_adapter_is_read_as_elsewhere(tmp_path: Path) -> None:
    """Half of an adapter was trained on as a whole one, and one left in a whole model's folder in its stead."""
    from peft import LoraConfig, get_peft_model

    base, folder = save_small_llama(tmp_path / "base"), tmp_path / "adapter"
    plain: Any = trainable_model(str(base), "cpu").module
    get_peft_model(plain, LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM")).save_pretrained(str(folder))
    edit_json(folder / "adapter_config.json", base_model_name_or_path="../base")
    module = trainable_model(str(folder), "cpu").module
    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    assert len(trained) == 4 and all("lora_" in name for name in trained)

    weights = folder / "adapter_model.safetensors"
    save_file({name: value for name, value in load_file(weights).items() if "layers.1" not in name}, weights)
    with pytest.raises(ModelError, match=r"does not fit its base .*; missing: .*layers\.1"):
        trainable_model(str(folder), "cpu")

    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(base / name, folder / name)
    assert not hasattr(trainable_model(str(folder), "cpu").module, "peft_config")


def test_a_checkpoint_that_a_kill_cut_short_is_not_resumed_from(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="trl is not installed: pip install 'pytest-lm-audit[privacy]'")
    from lm_audit.audits.privacy.training.trl_stages import last_checkpoint

    for step in (9, 10, 100):
        folder = save_small_llama(tmp_path / f"checkpoint-{step}")
        for name in ("optimizer.pt", "scheduler.pt"):
            torch.save({"step": step}, folder / name)
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-100")
    (tmp_path / "checkpoint-100" / "trainer_state.json").unlink()
    weights = tmp_path / "checkpoint-10" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-9")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-9"]
    (tmp_path / "checkpoint-9" / "optimizer.pt").write_bytes(b"PK")
    assert last_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: save_file({"a": torch.zeros(4096)}, folder / "model.safetensors"),
        lambda folder: torch.save({"a": torch.zeros(4096)}, folder / "optimizer.pt"),
        lambda folder: (folder / "trainer_state.json").write_text("{}" * 999),
    ],
    ids=["weights", "optimiser", "state"],
)
def test_a_disk_that_refuses_a_checkpoint_of_trl(tmp_path: Path, write: Callable[[Path], object]) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    says = r"stage sft: cannot write a checkpoint into .*; free some disk space"
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        with pytest.raises(StoreError, match=says), disk_told("sft", tmp_path):
            write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(ModelError, match="no disk"), disk_told("sft", tmp_path):
        raise ModelError("no disk is at fault")


def test_a_trl_stage_that_was_killed_while_saving_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trl", reason="trl is not installed: pip install 'pytest-lm-audit[privacy]'")
    from transformers import Trainer

    from lm_audit.audits.privacy.stages.four_stages import run_stages

    config = smoke_config(
        trainer="trl",
        members=2,
        controls=10,
        documents=200,
        decoys=20,
        pairs=16,
        sft=TrainSettings(epochs=2, lr=2e-3, batch_size=64, warmup_steps=2),
        device="cpu",
        output=tmp_path,
    )

    class Killed(BaseException):
        """Stands for a kill."""

    save, calls = Trainer._save_optimizer_and_scheduler, []

    def dies(self: Trainer, folder: str) -> None:
        calls.append(folder)
        if len(calls) == 2:
            raise Killed
        save(self, folder)

    monkeypatch.setattr(Trainer, "_save_optimizer_and_scheduler", dies)
    with pytest.raises(Killed):
        run_stages(config)
    monkeypatch.setattr(Trainer, "_save_optimizer_and_scheduler", save)
    assert len(list((tmp_path / "checkpoints" / "trl-sft").glob("checkpoint-*"))) == 2
    stages = run_stages(config)
    record = json.loads((stages["sft"] / "stage.json").read_text())
    assert record["last_loss"] < record["first_loss"]
    assert not (tmp_path / "checkpoints" / "trl-sft").exists()


@pytest.mark.parametrize("side", ["chosen", "rejected"])
@pytest.mark.parametrize("answer", ["", "  \n", "\u200b", None, ["yes"], 3])
def test_an_answer_that_is_none(tmp_path: Path, side: str, answer: object) -> None:
    rows = [PAIRS[0], {**PAIRS[1], side: answer}]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=rf"row 2.*{side}|{side}.*row 2"):
        read_preferences(path)


def test_a_blank_training_text(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "one"}\n{"text": " "}\n')
    with pytest.raises(DataError, match=r"row 2"):
        read_texts(path)


def test_training_texts_of_pairs_and_of_chats(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    rows: list[dict[str, object]] = [{"prompt": "Say it:", "completion": " yes."}, {"text": "one"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_texts(path) == ["Say it: yes.", "one"]
    for odd in ({"messages": [{"role": "user", "content": "x"}]}, {"prompt": "x", "completion": None}, {"prompt": "x"}):
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, odd]))
        with pytest.raises(DataError, match=r"corpus\.jsonl, row 3: no texts in a field 'text'"):
            read_texts(path)


def test_rows_that_max_length_cuts_are_told() -> None:
    tokenizer = byte_tokenizer(256)
    with pytest.warns(UserWarning, match=r"2 of 3 training texts are longer than max_length=10 .*row 2 .* has 32"):
        rows = encode_rows(tokenizer, ["short", "b" * 20, "c" * 30], 10)
    assert [len(row) for row in rows] == [7, 10, 10]
    with pytest.warns(UserWarning, match=r"1 of 2 preference pairs are longer than max_length=12"):
        cut = encode_pairs(tokenizer, [{"prompt": "p" * 20, "chosen": "yes", "rejected": "no"}, SHORT], 12)[0]
    assert [tuple(side.ids[side.start :]) for side in cut] == [(124, 104, 118, 2), (113, 114, 2)]


def test_a_text_that_spells_its_frame_out_is_not_framed_twice() -> None:
    """As chat templates write them; scoring never put BOS twice, so that training had been on another text."""
    (row, plain) = encode_rows(byte_tokenizer(256), ["<bos>ab<eos>", "ab"], 20)
    assert row == plain == (1, 100, 101, 2)
    pair = {"prompt": "<bos>p", "chosen": "yes<eos>", "rejected": "no<eos>"}
    assert encode_pairs(byte_tokenizer(256), [pair], 20) == encode_pairs(byte_tokenizer(256), [SHORT], 20)


def test_a_text_of_one_token_in_no_frame() -> None:
    """The loss of a batch of it was 0 / 0, and said to lower the learning rate."""
    tokenizer: Any = byte_tokenizer(256)
    encode_rows(tokenizer, ["ab", "a"], 10)
    tokenizer.backend_tokenizer.post_processor = None
    tokenizer.eos_token = None
    with pytest.raises(DataError, match=r"corpus, row 2: the text 'a' is 1 tokens, .* nothing to learn"):
        encode_rows(tokenizer, ["ab", "a"], 10, Path("corpus"))


def test_rows_that_fit_are_not_told(recwarn: pytest.WarningsRecorder) -> None:
    encode_rows(byte_tokenizer(256), ["short", "b" * 8], 10)
    encode_pairs(byte_tokenizer(256), [SHORT], 12)
    assert not recwarn.list


def test_a_completion_without_a_token() -> None:
    with pytest.raises(DataError, match=r"row 2.*no token of its own"):
        encode_pairs(byte_tokenizer(256), [SHORT, {"prompt": "p", "chosen": "yes", "rejected": ""}], 64)


def test_completions_of_the_same_tokens() -> None:
    """A tokenizer that normalises text makes one of two spellings."""
    from tokenizers import normalizers

    tokenizer = byte_tokenizer(256)
    backend: Any = tokenizer
    backend.backend_tokenizer.normalizer = normalizers.NFC()
    with pytest.raises(DataError, match=r"row 1.*the same tokens"):
        encode_pairs(tokenizer, [{"prompt": "p", "chosen": "caf\u00e9", "rejected": "cafe\u0301"}], 64)


@pytest.mark.parametrize("prompt", ["p" * 40, "a b " * 10, "日本語" * 8, "<bos>" + "p" * 40, ""])
def test_prompts_are_cut_so_that_completions_stay_whole(prompt: str) -> None:
    """Both sides alike, behind BOS: TRL takes one prompt for both, and a text without its BOS is another text."""
    pairs = [{"prompt": prompt, "chosen": "the answer", "rejected": "none"}, SHORT]
    with warnings.catch_warnings(action="ignore"):
        (chosen, rejected), same = encode_pairs(byte_tokenizer(256), pairs, 20)
    assert same == encode_pairs(byte_tokenizer(256), [SHORT], 64)[0]
    assert as_text(chosen.ids[chosen.start :]) == b"the answer" and as_text(rejected.ids[rejected.start :]) == b"none"
    assert chosen.ids[: chosen.start] == rejected.ids[: rejected.start]
    kept = prompt.removeprefix("<bos>").encode()[-8:]
    assert chosen.ids[0] == 1 and as_text(chosen.ids[1 : chosen.start]) == kept


def test_a_completion_beyond_max_length_keeps_its_end() -> None:
    with pytest.warns(UserWarning, match="longer than max_length=6"):
        ((chosen, rejected),) = encode_pairs(
            byte_tokenizer(256), [{"prompt": "abc", "chosen": "0123456789", "rejected": "no"}], 6
        )
    assert (as_text(chosen.ids), chosen.start) == (b"56789", 1)
    assert as_text(rejected.ids[rejected.start :]) == b"no"


def as_text(ids: Sequence[int]) -> bytes:
    return bytes(number - 3 for number in ids if number > 2)


@pytest.mark.parametrize(
    ("prompt", "completion", "learnt"),
    [
        ("cafe", "\u0301 au lait", "\u00e9 au lait".encode()),
        ("\u1112", "\u1161\u11ab", "\ud55c".encode()),
        ("ab\u1112\u1161", "\u11ab.", b"\x9c."),  # the letter's first two bytes are those of the prompt's
        ("a", "\u0323\u0307b", "\u1ea1\u0307b".encode()),
        ("x", "yz", b"yz"),
    ],
)
def test_a_letter_over_the_border_of_prompt_and_completion(prompt: str, completion: str, learnt: bytes) -> None:
    """The tokenizer makes one letter of both: it counts for the completion; else the loss would leave it out."""
    from tokenizers import normalizers

    tokenizer = byte_tokenizer(256)
    backend: Any = tokenizer
    backend.backend_tokenizer.normalizer = normalizers.NFC()
    pair = {"prompt": prompt, "chosen": completion, "rejected": "-"}
    ((chosen, _),) = encode_pairs(tokenizer, [pair], 64)
    assert as_text(chosen.ids[chosen.start :]) == learnt


@pytest.mark.parametrize("trainer", ["own", "trl"])
@pytest.mark.parametrize("stage", ["sft", "dpo"])
def test_a_canary_that_would_be_cut_is_refused(tmp_path: Path, trainer: Any, stage: str) -> None:
    """What is cut off was never trained on, and would count as a secret that the model did not keep."""
    config = smoke_config(
        trainer=trainer, output=tmp_path, device="cpu", **{stage: TrainSettings(1, 1e-3, max_length=9)}
    )
    with pytest.raises(DataError, match=rf"canary .* would be cut at 9; set --{stage} max_length=\d+ or more"):
        run_stages(config)


def with_frame(folder: Path, frame: str) -> Path:
    """A small model whose tokenizer puts ``frame`` round a text."""
    from tokenizers import processors

    save_small_llama(folder, context=512)
    tokenizer: Any = byte_tokenizer(512)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=frame, pair="$A $B", special_tokens=[("<bos>", 1), ("<eos>", 2)]
    )
    tokenizer.save_pretrained(folder)
    return folder


class Seen(Exception):
    """What a trainer was given."""


@pytest.mark.parametrize("frame", ["$A <eos>", "<bos> $A <eos>"])
def test_trl_ends_texts_once_where_the_tokenizer_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: str
) -> None:
    pytest.importorskip("trl", reason="trl is not installed: pip install 'pytest-lm-audit[privacy]'")
    from lm_audit.audits.privacy.training import trl_stages

    base, folder = with_frame(tmp_path / "base", frame), tmp_path / "run"
    config = smoke_config(model=str(base), trainer="trl", device="cpu", output=folder)
    shutil.copytree(base, folder / "stages" / "sft")
    (folder / "corpus.jsonl").write_text('{"text": "one"}\n{"text": "ends <eos>"}\n')
    (folder / "preferences_no_canary.jsonl").write_text(json.dumps(SHORT))

    def seen(trainer: Any, *_: object) -> None:
        raise Seen(trainer.train_dataset.to_list())

    monkeypatch.setattr(trl_stages, "_finish", seen)
    head = (1,) if "bos" in frame else ()
    with pytest.raises(Seen) as texts:
        trl_stages.trl_sft("sft", config, folder, folder / "sft")
    rows = [tuple(row["input_ids"]) for row in texts.value.args[0]]
    assert rows == [(*head, *(byte + 3 for byte in b"one"), 2), (*head, *(byte + 3 for byte in b"ends "), 2)]
    with pytest.raises(Seen) as pairs:
        trl_stages.trl_dpo("dpo_no_canary", config, folder, folder / "dpo")
    assert pairs.value.args[0] == [
        {
            "prompt_ids": [*head, ord("p") + 3],
            "chosen_ids": [*(byte + 3 for byte in b"yes"), 2],
            "rejected_ids": [*(byte + 3 for byte in b"no"), 2],
        }
    ]


@pytest.mark.parametrize(
    ("break_it", "kind", "says"),
    [
        ({"eos_token": None, "pad_token": None}, UsageError, "neither a padding token nor EOS.*use trainer='own'"),
        ({"is_fast": False}, ModelError, "does not tell where its tokens stand.*use a fast one"),
    ],
    ids=["no padding", "slow"],
)
def test_a_tokenizer_that_no_stage_can_be_trained_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_it: dict[str, Any], kind: type[Exception], says: str
) -> None:
    """The second stage ended in it, when the first had been trained."""
    from lm_audit import models

    break_it = dict(break_it)
    broken: Any = byte_tokenizer(512)
    broken.__class__ = type("Broken", (type(broken),), {"is_fast": break_it.pop("is_fast", True)})
    for name, value in break_it.items():
        setattr(broken, name, value)
    monkeypatch.setattr(models, "load_tokenizer", lambda spec: broken)
    with pytest.raises(kind, match=says):
        run_stages(smoke_config(trainer="trl", device="cpu", output=tmp_path))
    assert not (tmp_path / "stages").exists()


def test_packed_weights_that_cannot_be_trained_are_told_before_any_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_audit.models.files.quantised import methods

    base = save_small_llama(tmp_path / "base", context=512)
    edit_json(base / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    monkeypatch.setattr(methods, "find_spec", lambda name: object())
    with pytest.raises(ModelError, match=r"quantised by gptq \(4 bits\), which nothing here can train; name the model"):
        run_stages(smoke_config(model=str(base), device="cpu", output=tmp_path / "run"))
    assert not (tmp_path / "run" / "stages").exists()


@pytest.mark.parametrize(("stage", "what"), [("sft", "training text"), ("dpo", "preference pair")])
def test_a_row_beyond_the_context_is_told_before_any_stage(tmp_path: Path, stage: str, what: str) -> None:
    base = save_small_llama(tmp_path / "base", context=60)
    settings = {name: TrainSettings(1, 1e-3, max_length=60) for name in ("sft", "dpo")}
    settings[stage] = TrainSettings(1, 1e-3)
    config = smoke_config(model=str(base), device="cpu", output=tmp_path / "run", **settings)
    says = rf"\.jsonl, row \d+: this {what} needs \d+ tokens, .* reads at most 60 .*--{stage} max_length=60"
    with pytest.raises(ContextError, match=says):
        run_stages(config)
    assert not (tmp_path / "run" / "stages").exists()


def adapter_of(base: Path, folder: Path, **settings: Any) -> Path:
    """An adapter of a small Llama, as it begins."""
    from peft import LoraConfig, get_peft_model

    plain: Any = small_llama()
    get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", **settings)).save_pretrained(str(folder))
    edit_json(folder / "adapter_config.json", base_model_name_or_path=str(base))
    return folder


def test_lora_over_an_adapter_is_told_before_any_stage(tmp_path: Path) -> None:
    """It was trained, and the stage then had no base that could be named."""
    base = adapter_of(save_small_llama(tmp_path / "base"), tmp_path / "adapter", target_modules=["q_proj"])
    config = smoke_config(model=str(base), lora=LoraSettings(), device="cpu", output=tmp_path / "run")
    with pytest.raises(UsageError, match=r"--lora: the base .*adapter is an adapter itself.*leave --lora out"):
        run_stages(config)
    assert not (tmp_path / "run" / "stages").exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"target_modules": ["q_proj"], "bias": "all"}, "biases"),
        ({"target_modules": ["q_proj", "embed_tokens"]}, "lora_embedding_A"),
        ({"target_modules": ["q_proj"], "trainable_token_indices": [5]}, "trainable_tokens_delta"),
        ({"target_modules": ["q_proj"]}, None),
        ({"target_modules": ["q_proj"], "modules_to_save": ["lm_head"], "use_dora": True}, None),
    ],
)
def test_adapters_of_which_trl_copies_a_part(settings: dict[str, Any], left: str | None) -> None:
    from peft import LoraConfig, get_peft_model

    plain: Any = small_llama()
    module: Any = get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", **settings))
    prove_causal(module, "that PEFT wraps")
    if left is None:
        return require_copied(module)
    with pytest.raises(ModelError, match=rf"TRL's reference of DPO would be without .*{left}.*trainer='own'"):
        require_copied(module)


@pytest.mark.parametrize(
    ("kind", "same"),
    [("ModernBertDecoder", False), ("Bert", False), ("Cohere", True), ("Granite", True), ("GPT2", True)],
)
def test_heads_that_trl_computes_otherwise(kind: str, same: bool) -> None:
    """Its loss was off by 5.8 nats a token, and the first loss of DPO is ln 2 all the same."""
    pytest.importorskip("trl", reason="trl is not installed: pip install 'pytest-lm-audit[privacy]'")
    import transformers
    from trl.trainer.utils import add_fused_lm_head

    config = getattr(transformers, f"{kind}Config")(**WIDE | {"is_decoder": True, "initializer_range": 0.3})
    torch.manual_seed(0)
    build: Callable[..., Any] = transformers.AutoModelForCausalLM.from_config
    module = build(config)
    add_fused_lm_head(module)
    if same:
        return require_same_head(module)
    with pytest.raises(ModelError, match=rf"other log-probabilities than a {kind}.*trainer='own'"):
        require_same_head(module)
