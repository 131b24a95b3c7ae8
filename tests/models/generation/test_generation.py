"""``LanguageModel.generate`` on small random models, against transformers' own ``generate`` and against itself."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.errors import ContextError, ModelError, UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.generation import memory
from lm_audit.models.generation.in_slots import slot_decoding
from lm_audit.models.generation.in_slots.slot_decoding import decode_in_slots
from lm_audit.models.generation.in_slots.table import Work
from lm_audit.models.generation.sampling import Picker
from lm_audit.models.generation.stopping import Continuation, Room
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.pretrained import as_causal, llama, pretrained_tokenizer
from tests.models.small_models import small_llama

PROMPTS = ["a", "some words", "z" * 30, "some words", "é"]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(small_llama(initializer_range=0.6), byte_tokenizer(64), name="small")


def greedy_by_transformers(module: Any, ids: list[int], new: int) -> list[int]:
    """What transformers generates greedily after ``ids``, up to EOS."""
    out: list[int] = module.generate(torch.tensor([ids]), max_new_tokens=new, do_sample=False)[0, len(ids) :].tolist()
    return out[: out.index(2)] if 2 in out else out


def mistral() -> Any:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(1)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    return MistralForCausalLM(
        MistralConfig(vocab_size=259, num_key_value_heads=2, sliding_window=8, initializer_range=0.6, **shape)
    )


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=259, n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.6, eos_token_id=2
        )
    )


def gpt_neox() -> Any:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(1)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=259, initializer_range=0.6, eos_token_id=2, **shape))


def mamba() -> Any:
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(1)
    return MambaForCausalLM(
        MambaConfig(
            vocab_size=259, hidden_size=16, num_hidden_layers=2, state_size=4, initializer_range=0.6, eos_token_id=2
        )
    )


@pytest.mark.parametrize("build", [small_llama, mistral, gpt2, gpt_neox, mamba])
def test_greedy_equals_transformers_own(build: Any) -> None:
    module = build().eval()
    tokenizer = byte_tokenizer(64)

    answers = LanguageModel(module, tokenizer, name="any").generate(PROMPTS, max_new_tokens=12)

    for prompt, answer in zip(PROMPTS, answers, strict=True):
        assert list(answer.token_ids) == greedy_by_transformers(module, tokenizer(prompt).input_ids, 12)


def test_an_answer_does_not_depend_on_the_batch(model: LanguageModel) -> None:
    together = model.generate(PROMPTS, max_new_tokens=16)

    assert together == [model.generate([prompt], max_new_tokens=16)[0] for prompt in PROMPTS]
    assert together[1] == together[3]


def test_prompts_are_read_once_and_tokens_one_by_one(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    read, logits = watched_shapes(model, monkeypatch)
    answers = model.generate(["a", "some words", "z" * 12], max_new_tokens=6)

    assert {answer.finish_reason for answer in answers} == {"length"}
    assert read == [(3, 13), *[(3, 1)] * 5]
    assert logits == [3] * 6


def test_a_place_that_is_left_goes_to_the_next_prompt(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots, five prompts: a row joins while the other goes on, and no answer changes by it."""
    prompts = ["a", "some words", "z" * 30, "go on", "é"]
    limits = {"a": 2, "some words": 9, "z" * 30: 3, "go on": 4, "é": 1}
    expected = [model.generate([prompt], max_new_tokens=limits[prompt])[0].token_ids for prompt in prompts]
    assert [len(ids) for ids in expected] == list(limits.values())
    sound = memory.groups
    monkeypatch.setattr(slot_decoding, "groups", lambda *given: [replace(group, slots=2) for group in sound(*given)])
    read, _ = watched_shapes(model, monkeypatch)
    found: dict[int, tuple[int, ...]] = {}
    ids = [model.tokenizer(prompt).input_ids for prompt in prompts]

    def begin(index: int) -> Continuation:
        return Continuation(model.tokenizer, frozenset([2]), (), Room(limits[prompts[index]]))

    picker = Picker(ids, temperature=0.0, seed=0)
    work = Work(ids, begin, picker, lambda index, row: found.update({index: tuple(row.ids)}))
    assert decode_in_slots(model, work, [len(one) + 9 for one in ids]) == []

    assert [found[index] for index in range(5)] == expected
    joined = [rows for rows, tokens in read if tokens > 1]
    assert sum(joined) == 5 and max(rows for rows, _ in read) == 2 and 1 in joined
    assert (2, 1) in read[len(read) // 2 :]


def watched_shapes(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, int]], list[int]]:
    """Shapes of the ids that the body reads, and rows of logits that the head computes, from now on."""
    body, forward = llama(model.module).model, model.module.forward
    own = body.forward
    read: list[tuple[int, int]] = []
    logits: list[int] = []
    _ = model.slots  # its trial is no part of a decoding

    @functools.wraps(own)
    def reading(*given: Any, input_ids: Any, **arguments: Any) -> Any:
        read.append(tuple(input_ids.shape))
        return own(*given, input_ids=input_ids, **arguments)

    @functools.wraps(forward)
    def answering(*given: Any, **arguments: Any) -> Any:
        output = forward(*given, **arguments)
        logits.append(output.logits.shape[1])
        return output

    monkeypatch.setattr(body, "forward", reading)
    monkeypatch.setattr(model.module, "forward", answering)
    return read, logits


def test_a_module_without_a_cache_reads_rows_whole(model: LanguageModel) -> None:
    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.config = model.module, model.module.config

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def forward(self, input_ids: Any, use_cache: bool = False) -> Any:
            return self.inner(input_ids=input_ids, use_cache=False)

    plain = LanguageModel(as_causal(Plain()), model.tokenizer, name="plain")

    assert plain.generate(PROMPTS, max_new_tokens=8) == model.generate(PROMPTS, max_new_tokens=8)


def test_prompts_as_ids(model: LanguageModel) -> None:
    ids = model.tokenizer("some words").input_ids

    prompts: list[Any] = [ids, tuple(ids), np.array(ids)]
    for prompt in prompts:
        assert model.generate([prompt], max_new_tokens=8) == model.generate(["some words"], max_new_tokens=8)


def test_bos_is_never_doubled(model: LanguageModel) -> None:
    assert model.generate(["<bos>some"], max_new_tokens=8) == model.generate(["some"], max_new_tokens=8)


def test_no_prompts(model: LanguageModel) -> None:
    assert model.generate([], max_new_tokens=8) == []


def test_no_new_tokens(model: LanguageModel) -> None:
    (answer,) = model.generate(["a"], max_new_tokens=0)

    assert (answer.text, answer.token_ids, answer.finish_reason) == ("", (), "length")


def test_length_is_kept(model: LanguageModel) -> None:
    for answer in model.generate(PROMPTS, max_new_tokens=7):
        assert len(answer.token_ids) == 7 or answer.finish_reason == "eos"


class TestContext:
    def test_generation_ends_where_the_context_is_full(self, model: LanguageModel) -> None:
        (answer,) = model.generate(["b" * 59], max_new_tokens=50)

        assert answer.finish_reason == "length"
        assert len(answer.token_ids) == 5  # 60 of 64 positions are the prompt's; the last token is never read

    def test_a_full_prompt_still_gets_one_token(self, model: LanguageModel) -> None:
        assert len(model.generate(["b" * 63], max_new_tokens=50)[0].token_ids) == 1

    def test_a_prompt_that_is_too_long_is_named(self, model: LanguageModel) -> None:
        with pytest.raises(ContextError, match="prompt 1 needs 65 tokens, and small reads at most 64"):
            model.generate(["a", "b" * 64], max_new_tokens=1)


class Scripted(torch.nn.Module):
    """A causal language model that says ``script`` whatever it is asked: each token depends on how many came before."""

    def __init__(self, script: list[int], start: int) -> None:
        super().__init__()
        self.inner = small_llama()
        self.config, self.generation_config = self.inner.config, None
        self.script, self.start, self.steps = script, start, 0

    def get_input_embeddings(self) -> Any:
        return self.inner.get_input_embeddings()

    def forward(self, input_ids: Any, attention_mask: Any, past_key_values: Any, use_cache: bool) -> Any:
        from types import SimpleNamespace

        self.steps += 1
        logits = torch.zeros(len(input_ids), 1, 259)
        logits[..., self.script[int(attention_mask.sum(1).max()) - self.start]] = 9.0
        return SimpleNamespace(logits=logits, past_key_values=past_key_values)


def scripted(text: str, *, prompt: str = "p") -> tuple[LanguageModel, Scripted]:
    tokenizer = byte_tokenizer(64)
    script = [*tokenizer(text, add_special_tokens=False).input_ids, 2]
    module = Scripted(script, len(tokenizer(prompt).input_ids))
    return LanguageModel(as_causal(module), tokenizer, name="scripted"), module


class TestStopping:
    @pytest.mark.parametrize(
        ("stop", "text", "read"),
        [
            (["\n"], "one two", "one two\n"),
            (["two"], "one ", "one two"),
            (["\n", "ne t"], "o", "one t"),
            (["three"], "one two\n", "one two\nthree"),
            (["世"], "one two\nthree ", "one two\nthree 世"),
            (["absent", "one two\nthr"], "", "one two\nthr"),
        ],
    )
    def test_stop_strings_span_tokens(self, stop: list[str], text: str, read: str) -> None:
        model, _ = scripted("one two\nthree 世界")

        (answer,) = model.generate(["p"], max_new_tokens=50, stop=stop)

        assert (answer.text, answer.finish_reason) == (text, "stop")
        assert model.tokenizer.decode(answer.token_ids) == read

    def test_a_stop_string_in_the_prompt_does_not_count(self) -> None:
        model, _ = scripted("yes. no.", prompt="stop. ")

        assert model.generate(["stop. "], max_new_tokens=50, stop=["stop"])[0].text == "yes. no."

    def test_eos_ends_and_is_not_shown(self) -> None:
        model, module = scripted("done")

        (answer,) = model.generate(["p"], max_new_tokens=50)

        assert (answer.text, len(answer.token_ids), answer.finish_reason) == ("done", 4, "eos")
        assert module.steps == 5

    def test_special_tokens_do_not_hide_a_stop_string(self) -> None:
        model, _ = scripted("a<bos><bos><bos><bos><bos><bos><bos><bos>b c")

        assert model.generate(["p"], max_new_tokens=50, stop=["ab"])[0].text == ""

    def test_the_batch_ends_with_its_last_row(self) -> None:
        model, module = scripted("short")

        model.generate(["p", "p", "p"], max_new_tokens=50)

        assert module.steps == 6

    @pytest.mark.parametrize("stop", ["\n", [""], [3]])
    def test_stop_must_be_strings(self, model: LanguageModel, stop: Any) -> None:
        with pytest.raises(UsageError, match="stop is"):
            model.generate(["a"], max_new_tokens=1, stop=stop)


class TestSampling:
    def test_a_seed_gives_the_same_answers(self, model: LanguageModel) -> None:
        first, again, other = (
            model.generate(PROMPTS, max_new_tokens=12, temperature=1.0, seed=seed) for seed in (3, 3, 4)
        )

        assert first == again != other

    def test_a_draw_is_the_prompts_own(self, model: LanguageModel) -> None:
        together = model.generate(PROMPTS, max_new_tokens=12, temperature=1.0, seed=3)

        for index in (0, 1, 2, 4):
            alone = model.generate([PROMPTS[index]], max_new_tokens=12, temperature=1.0, seed=3)
            assert alone == [together[index]]

    def test_repeats_of_a_prompt_are_draws_of_their_own(self, model: LanguageModel) -> None:
        answers = model.generate(["a"] * 8, max_new_tokens=12, temperature=1.0)

        assert len({answer.token_ids for answer in answers}) > 4
        assert answers[:3] == model.generate(["a"] * 3, max_new_tokens=12, temperature=1.0)

    def test_a_low_temperature_is_greedy(self, model: LanguageModel) -> None:
        assert model.generate(PROMPTS, max_new_tokens=8, temperature=1e-4) == model.generate(PROMPTS, max_new_tokens=8)

    def test_frequencies_are_the_models_probabilities(self, model: LanguageModel) -> None:
        """3,000 first tokens against softmax(logits / 2), by chi-square; a seed cannot fail it by chance twice."""
        from scipy.stats import chi2

        draws = model.generate(["a"] * 3000, max_new_tokens=1, temperature=2.0, seed=0)
        with torch.no_grad():
            logits = model.module(torch.tensor([model.tokenizer("a").input_ids])).logits[0, -1].double()
        expected = 3000 * torch.softmax(logits / 2.0, dim=-1).numpy()
        seen = Counter(answer.token_ids[0] if answer.token_ids else 2 for answer in draws)
        common = [token for token in range(259) if expected[token] >= 10]
        rare = 3000 - sum(expected[token] for token in common)

        terms = [(seen[token] - expected[token]) ** 2 / expected[token] for token in common]
        terms.append((3000 - sum(seen[token] for token in common) - rare) ** 2 / rare)

        assert len(common) > 10
        assert chi2.sf(sum(terms), len(common)) > 1e-3

    @pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
    def test_temperature_must_be_sensible(self, model: LanguageModel, temperature: float) -> None:
        with pytest.raises(UsageError, match="temperature is"):
            model.generate(["a"], max_new_tokens=1, temperature=temperature)


class TestChat:
    def test_text_becomes_a_users_turn(self, model: LanguageModel) -> None:
        turns: list[Any] = [[{"role": "user", "content": "hi"}]]
        by_chat = model.generate(["hi"], max_new_tokens=8, chat=True)

        assert by_chat == model.generate(["user: hi\nassistant:"], max_new_tokens=8)
        assert by_chat == model.generate(turns, max_new_tokens=8, chat=True)

    def test_a_model_without_a_template_says_so(self) -> None:
        tokenizer = byte_tokenizer(64)
        pretrained_tokenizer(tokenizer).chat_template = None

        with pytest.raises(UsageError, match="no chat template"):
            LanguageModel(small_llama(), tokenizer, name="plain").generate(["hi"], max_new_tokens=1, chat=True)


class TestBadInput:
    def test_one_string_is_not_a_list_of_prompts(self, model: LanguageModel) -> None:
        with pytest.raises(UsageError, match="prompts is one string"):
            model.generate("hello", max_new_tokens=1)

    @pytest.mark.parametrize(("prompts", "says"), [(["a", []], "prompt 1 has no token"), ([7], "prompt 0 is int")])
    def test_a_bad_prompt_is_named(self, model: LanguageModel, prompts: Any, says: str) -> None:
        with pytest.raises(UsageError, match=says):
            model.generate(prompts, max_new_tokens=1)

    def test_negative_length(self, model: LanguageModel) -> None:
        with pytest.raises(UsageError, match="max_new_tokens is -1"):
            model.generate(["a"], max_new_tokens=-1)

    def test_nan_names_the_model_and_the_prompt(self) -> None:
        module = small_llama()
        with torch.no_grad():
            module.model.embed_tokens.weight[ord("x") + 3] = float("nan")
        broken = LanguageModel(module, byte_tokenizer(64), name="broken")

        with pytest.raises(ModelError, match="model broken answered prompt 1 with NaN"):
            broken.generate(["a", "x"], max_new_tokens=2)


def test_memory_that_runs_out_halves_the_batch(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = model.generate(PROMPTS, max_new_tokens=6)
    body = llama(model.module).model
    forward = body.forward
    sizes: list[int] = []
    holds = [2]

    def little_memory(*_: Any, input_ids: Any, **arguments: Any) -> Any:
        sizes.append(len(input_ids))
        if len(input_ids) > holds[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(input_ids=input_ids, **arguments)

    monkeypatch.setattr(body, "forward", functools.wraps(forward)(little_memory))

    for rows in (2, 1):
        holds[0] = rows
        sizes.clear()
        assert model.generate(PROMPTS, max_new_tokens=6) == expected
        assert max(sizes) > 2
    holds[0] = 0
    with pytest.raises(ModelError, match=r"model small: no memory for prompt [0-4] alone"):
        model.generate(PROMPTS, max_new_tokens=6)


def test_progress_is_reported(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int]] = []
    monkeypatch.setattr(model, "on_progress", lambda *report: seen.append(report))

    answers = model.generate(PROMPTS, max_new_tokens=4)

    prompt_tokens = sum(len(model.tokenizer(prompt).input_ids) for prompt in PROMPTS)
    assert seen[-1] == (5, 5, prompt_tokens + sum(len(answer.token_ids) for answer in answers))


@pytest.mark.parametrize(("told", "taken"), [(8 << 30, 2 << 30), (None, 1 << 30)])
def test_rows_on_a_cpu_take_a_quarter_of_what_the_machine_or_its_container_has(
    monkeypatch: pytest.MonkeyPatch, told: int | None, taken: int
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: told)
    assert memory.free_bytes(torch.device("cpu")) == taken
