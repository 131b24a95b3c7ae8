"""The embedded toy: its text, its tokenizer, and that a seed makes it bit by bit."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.loading.identity.fingerprint import module_digest
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.toy.criterion import Criterion, mean_log_probability
from lm_audit.models.toy.tiny import (
    EMBEDDED,
    TinySettings,
    base_text,
    build_tiny,
    seeded_text,
    text_rows,
    tiny_folder,
    train_tiny,
    train_tiny_until,
)
from lm_audit.models.toy.tiny_model import tiny_model
from lm_audit.models.toy.training import (
    TrainingSettings,
    lr_factor,
    next_token_loss,
    one_thread,
    pad_rows,
    shuffled_batches,
)
from tests.present import present

SMALL = TinySettings(hidden=32, mlp=48, rows=64, decoys=8, epochs=1)


class TestText:
    def test_a_seed_gives_the_same_text(self) -> None:
        assert seeded_text(50, 3) == seeded_text(50, 3) != seeded_text(50, 4)

    def test_a_longer_draw_begins_like_a_shorter_one(self) -> None:
        assert seeded_text(80, 3)[:50] == seeded_text(50, 3)

    def test_sentences_differ_and_are_short(self) -> None:
        text = seeded_text(1500, 0)

        assert len(set(text)) == 1500
        assert all(sentence.isascii() and 20 < len(sentence) < 100 for sentence in text)
        assert 50 < np.mean([len(sentence) for sentence in text]) < 70

    def test_two_draws_can_be_kept_apart(self) -> None:
        first = seeded_text(500, 0)

        assert not set(first) & set(seeded_text(500, 0, exclude=first))

    def test_base_text_holds_the_decoys(self) -> None:
        text = base_text(0)

        assert len(text) == 1500
        assert sum(row.startswith("The access code of the ") for row in text) == 120


class TestTokenizer:
    @pytest.mark.parametrize("text", ["", "plain", "naïve 世界 😀", " \t\n two  spaces ", "\x00\x7f\xad"])
    def test_ids_are_bytes_plus_three(self, text: str) -> None:
        tokenizer = byte_tokenizer(512)

        ids = tokenizer(text).input_ids

        assert ids == [1, *(byte + 3 for byte in text.encode())]
        assert tokenizer.decode(ids, skip_special_tokens=True) == text

    def test_saved_and_loaded_it_is_the_same(self, tmp_path: Path) -> None:
        from transformers import AutoTokenizer

        byte_tokenizer(512).save_pretrained(tmp_path)
        loaded = AutoTokenizer.from_pretrained(tmp_path)

        assert loaded("é b").input_ids == byte_tokenizer(512)("é b").input_ids
        assert (loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id, len(loaded)) == (0, 1, 2, 259)

    def test_chat_template(self) -> None:
        text = byte_tokenizer(512).apply_chat_template(
            [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
        )

        assert text == "<bos>user: hi\nassistant:"


class TestModel:
    def test_size_and_vocabulary(self) -> None:
        module = tiny_model().module

        assert sum(parameter.numel() for parameter in module.parameters()) == 422_912
        assert module.config.vocab_size == 259

    def test_two_builds_are_bit_identical(self) -> None:
        first, second = (build_tiny(0, SMALL)[0] for _ in range(2))

        assert module_digest(first) == module_digest(second)

    def test_seeds_differ(self) -> None:
        assert module_digest(build_tiny(0, SMALL)[0]) != module_digest(build_tiny(1, SMALL)[0])

    def test_builds_do_not_touch_the_callers_random_state_or_threads(self) -> None:
        torch.manual_seed(7)
        expected, threads = torch.rand(3), torch.get_num_threads()
        torch.manual_seed(7)

        build_tiny(0, SMALL)

        assert torch.equal(torch.rand(3), expected)
        assert torch.get_num_threads() == threads

    def test_cached_by_configuration(self, own_cache: Path) -> None:
        folder = tiny_folder(5, SMALL)
        before = (folder / "model.safetensors").stat().st_mtime_ns

        assert tiny_folder(5, SMALL) == folder
        assert (folder / "model.safetensors").stat().st_mtime_ns == before
        assert tiny_folder(6, SMALL) != folder
        assert load_model(folder, device="cpu").fingerprint == tiny_model(5, settings=SMALL).fingerprint

    def test_spec_and_function_give_one_model(self) -> None:
        by_spec = load_model("tiny", device="cpu")

        assert by_spec.fingerprint == tiny_model().fingerprint
        assert by_spec.name == tiny_model().name == "tiny"

    def test_it_has_learnt_its_sentences(self) -> None:
        """Nats a byte: ln 259 = 5.6 untrained, about 3 for one who knows the letters' frequencies."""
        model = tiny_model()
        unseen = seeded_text(40, 999)
        rows = [model.tokenizer(text).input_ids for text in unseen]
        noise = [model.tokenizer(text[::-1]).input_ids for text in unseen]

        with torch.no_grad():
            learnt, reversed_ = (float(next_token_loss(model.module, x, 0)) for x in (rows, noise))

        assert learnt < 1.5
        assert reversed_ > 2 * learnt

    def test_seed_0_is_shipped_and_trains_nothing(self, own_cache: Path) -> None:
        assert tiny_folder() == EMBEDDED == tiny_folder(0, TinySettings())
        assert load_model("tiny", device="cpu").fingerprint == load_model(EMBEDDED, device="cpu").fingerprint
        assert not (own_cache / "tiny").exists()

    def test_the_shipped_files_are_package_data(self) -> None:
        """A wheel holds what ``package-data`` names and nothing else."""
        root = Path(__file__).resolve().parents[3]
        patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][
            "lm_audit"
        ]
        package = root / "harness" / "lm_audit"
        named = {path for pattern in patterns for path in package.glob(pattern)}
        shipped = {path for folder in package.rglob("embedded") for path in folder.rglob("*") if path.is_file()}
        assert shipped <= named
        assert package / "models" / "toy" / "embedded" / "tiny" / "model.safetensors" in named

    @pytest.mark.slow
    def test_its_script_makes_the_shipped_model_again(self) -> None:
        """Another processor ends in other bits, so what the two have learnt is compared: nats a byte, and the odds."""
        made, tokenizer = build_tiny(0, TinySettings())
        shipped = tiny_model().module
        ids, mask = pad_rows([tokenizer(text).input_ids for text in seeded_text(200, 999)], 0, made.device)
        with torch.no_grad():
            first, second = (x(input_ids=ids, attention_mask=mask).logits.log_softmax(-1) for x in (made, shipped))
        at = mask[:, 1:].bool()
        losses = [-x[:, :-1].gather(-1, ids[:, 1:, None])[..., 0][at].mean().item() for x in (first, second)]
        assert losses[0] == pytest.approx(losses[1], abs=0.05)
        apart = (second.exp() * (second - first)).sum(-1)[:, :-1][at].mean().item()
        assert 0 <= apart < 0.05


@pytest.fixture(scope="module")
def base() -> LanguageModel:
    return LanguageModel(*build_tiny(0, SMALL), name="base")


class TestTraining:
    def test_gives_a_new_model(self, base: LanguageModel) -> None:
        before = module_digest(base.module)

        trained = train_tiny(base, ["a secret text"] * 8, seed=0, epochs=3, lr=3e-3)

        assert module_digest(base.module) == before != module_digest(trained.module)
        assert trained.fingerprint != base.fingerprint
        assert not trained.module.training
        assert not any(parameter.requires_grad for parameter in trained.module.parameters())

    def test_same_seed_same_bits(self, base: LanguageModel) -> None:
        digests = {
            seed: [
                module_digest(train_tiny(base, seeded_text(40, 1), seed=seed, epochs=1, lr=1e-3).module) for _ in "ab"
            ]
            for seed in (0, 1)
        }

        assert digests[0][0] == digests[0][1] != digests[1][0] == digests[1][1]

    def test_text_is_learnt_with_its_end(self, base: LanguageModel) -> None:
        learnt = Criterion("log-probability", mean_log_probability(text_rows(base.tokenizer, ["xyzzy plugh"]), 0), -0.1)

        trained, _ = train_tiny_until(base, ["xyzzy plugh"] * 16, learnt, seed=0, lr=1e-2, warmup_steps=5)

        (answer,) = trained.generate(["xyz"], max_new_tokens=20)

        assert (answer.text, answer.finish_reason) == ("zy plugh", "eos")

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_in_16_bits_it_is_trained_in_32(self, base: LanguageModel, dtype: torch.dtype) -> None:
        small = LanguageModel(copy.deepcopy(base.module), base.tokenizer, name="small")
        for parameter in small.module.parameters():
            parameter.data = parameter.data.to(dtype)
        learnt = Criterion("log-probability", mean_log_probability(text_rows(base.tokenizer, ["xyzzy plugh"]), 0), -0.1)

        trained, _ = train_tiny_until(small, ["xyzzy plugh"] * 16, learnt, seed=0, lr=1e-2, warmup_steps=5)

        assert {parameter.dtype for parameter in trained.module.parameters()} == {dtype}
        assert not any(parameter.requires_grad for parameter in trained.module.parameters())
        assert [b.dtype for b in trained.module.buffers()] == [b.dtype for b in base.module.buffers()]
        (scored,) = trained.loglikelihood([("xyzzy pl", "ugh")])
        assert scored.logprobs.mean() > -0.3

    def test_ids_are_taken_as_they_are(self, base: LanguageModel) -> None:
        text = "some text"
        ids = [*base.tokenizer(text).input_ids, present(base.tokenizer.eos_token_id)]
        texts: tuple[str | list[int], ...] = (text, ids)

        by_text, by_ids = (train_tiny(base, [x], seed=0, epochs=1, lr=1e-3) for x in texts)

        assert by_text.fingerprint == by_ids.fingerprint

    def test_nan_stops_with_the_step(self, base: LanguageModel) -> None:
        with pytest.raises(ModelError, match=r"training stopped at step [0-9]+: the loss is nan"):
            train_tiny(base, seeded_text(64, 1), seed=0, epochs=20, lr=1e30, warmup_steps=0)

    @pytest.mark.parametrize(
        ("texts", "says"), [([], "no text"), (["a" * 600], "text 0 has 602 tokens"), ([[5]], "2 to")]
    )
    def test_texts_that_cannot_be_trained_on(self, base: LanguageModel, texts: list[str], says: str) -> None:
        with pytest.raises(UsageError, match=says):
            train_tiny(base, texts, seed=0, epochs=1, lr=1e-3)

    def test_learning_rate_rises_and_falls(self) -> None:
        factor = lr_factor(TrainingSettings(epochs=2, lr=1.0), 94)

        assert factor(0) == 1 / 20
        assert factor(19) == factor(20) == 1.0
        assert factor(57) == pytest.approx(0.1 + 0.9 * 0.5)
        assert factor(94) == pytest.approx(0.1)

    def test_every_row_once_an_epoch(self) -> None:
        batches = list(shuffled_batches(70, TrainingSettings(epochs=2, lr=1.0), seed=0))

        assert [len(batch) for batch in batches] == [32, 32, 6] * 2
        for epoch in (batches[:3], batches[3:]):
            assert sorted(row for batch in epoch for row in batch) == list(range(70))
        assert batches[0] != batches[3]

    def test_steps_are_counted_as_batches(self) -> None:
        settings = TrainingSettings(epochs=2, lr=1.0)

        assert settings.steps(1500) == 94 == len(list(shuffled_batches(1500, settings, seed=0)))

    def test_padding_does_not_change_the_loss(self, base: LanguageModel) -> None:
        short, long = [1, 50, 51, 2], [1, *range(40, 60), 2]

        with torch.no_grad():
            alone = [float(next_token_loss(base.module, [row], 0)) for row in (short, long)]
            together = float(next_token_loss(base.module, [short, long], 0))

        assert together == pytest.approx((3 * alone[0] + 21 * alone[1]) / 24, rel=1e-5)

    def test_threads_come_back_after_an_error(self) -> None:
        threads = torch.get_num_threads()

        with pytest.raises(RuntimeError), one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError

        assert torch.get_num_threads() == threads
