"""Scores are those of single forward passes, continuations those of transformers' own generate, for every kind."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.models.checks.causality import prove_causal
from lm_audit.models.generation import memory
from lm_audit.models.generation.in_slots import slot_decoding
from lm_audit.models.generation.memory import Budget
from lm_audit.models.generation.shared_prefix import complete
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import ARCHITECTURES, QUICK, architecture
from tests.models.generation.near_ties import parting, partings, step_at, their_text
from tests.present import present

EOS = 2
NAMES = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow, id=name) for name in sorted(ARCHITECTURES)]


def rows(*lengths: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(3, 250, length).tolist() for length in lengths]


def wrapped(module: Any) -> LanguageModel:
    return LanguageModel(module, byte_tokenizer(128), name="under-test")


def own_logprobs(module: Any, prefix: list[int], target: list[int]) -> list[float]:
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([[*prefix, *target[:-1]]]), use_cache=False).logits[0]
    table = logits.double().log_softmax(-1)
    return [float(table[len(prefix) + place - 1, token]) for place, token in enumerate(target)]


def own_generate(module: Any, prompt: list[int], new: int) -> tuple[int, ...]:
    with torch.no_grad():
        whole = module.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=new,
            do_sample=False,
            pad_token_id=0,
        )
    made = whole[0, len(prompt) :].tolist()
    return tuple(made[: made.index(EOS)] if EOS in made else made)


@pytest.mark.parametrize("name", NAMES)
def test_scores_in_one_call_are_those_of_single_passes(name: str) -> None:
    module = architecture(name)
    trunk, other, short, long = rows(20, 25, 3, 50)
    requests = [(trunk, tail) for tail in rows(6, 6, 2, 9, seed=1)]
    requests += [(trunk[:9], rows(5, seed=2)[0]), (other, trunk[:3]), (short, other[:12]), (long, trunk[:10])]

    scored = wrapped(module).loglikelihood(requests, bos="none")

    prove_causal(module, name)
    for (prefix, target), scores in zip(requests, scored, strict=True):
        np.testing.assert_allclose(scores.logprobs, own_logprobs(module, prefix, target), atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_continuations_are_those_of_transformers(name: str) -> None:
    module = architecture(name)
    model = wrapped(module)
    prompts = [*rows(12, 5, 12, 20, 1), rows(12, seed=3)[0]]
    want = [own_generate(module, prompt, 10) for prompt in prompts]

    together = [one.token_ids for one in model.generate(prompts, max_new_tokens=10)]
    alone = [model.generate([prompt], max_new_tokens=10)[0].token_ids for prompt in prompts]

    assert together == want
    assert alone == want


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_rows_that_join_late_and_read_on_behind_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots for seven prompts: places change hands, beginnings are taken from slots that were left."""
    module = architecture(name)
    model = wrapped(module)
    trunk, other = rows(40, 6)
    prompts = [trunk[:36], [*trunk[:34], *other], trunk[:39], other, [*other, 9], trunk[:36], [*trunk[:12], 7]]
    want = [own_generate(module, prompt, 9) for prompt in prompts]
    sound = memory.groups
    monkeypatch.setattr(slot_decoding, "groups", lambda *given: [replace(one, slots=2) for one in sound(*given)])
    monkeypatch.setattr(slot_decoding, "budget", lambda *_: Budget(tokens=48, head_rows=2, worth=4))

    assert [one.token_ids for one in model.generate(prompts, max_new_tokens=9)] == want


@pytest.mark.parametrize("name", ["falcon", "gpt_oss"])
def test_a_way_of_stepping_that_is_refused_leaves_no_keys_behind(name: str) -> None:
    """Their layers do not attend by transformers' interface, so that a step by each row's length is wrong for them."""
    module = architecture(name)
    prompts = rows(12, 5, 30, 1)

    found = [one.token_ids for one in wrapped(module).generate(prompts, max_new_tokens=6)]

    assert found == [own_generate(module, prompt, 6) for prompt in prompts]


IN_SLOTS = {
    *("llama", "llama_bias", "llama3", "llama_linear", "llama_yarn", "llama_dynamic", "qwen2_swa", "qwen3", "gemma2"),
    *("mistral_swa", "gemma3_text", "gpt2", "gpt_neox", "gptj", "phi", "phi3_longrope", "olmo2", "olmo3", "falcon"),
    *("opt", "mixtral", "qwen3_moe", "granite", "cohere2", "smollm3", "gpt_oss", "deepseek_v3", "llama4_text"),
    *("exaone4", "nemotron", "gpt_bigcode", "xglm", "diffllama"),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_decoded_in_slots_and_what_says_why_not(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        slots = wrapped(architecture(name)).slots

    assert (slots is not None) == (name in IN_SLOTS)
    assert ("is decoded by the plain loop: " in caplog.text) == (name not in IN_SLOTS)


ROUTED = {"deepseek_v3", "mixtral", "qwen3_moe", "llama4_text", "gpt_oss"}
"""A token goes to other experts where the router's own logits are a near-tie: logits then differ by more than steps."""
IN_BFLOAT16 = [
    pytest.param(name, marks=[] if name in ("llama", "gpt2", "gpt_neox") else pytest.mark.slow, id=name)
    for name in sorted(IN_SLOTS)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_BFLOAT16)
def test_bfloat16_parts_from_transformers_at_a_near_tie_only(name: str) -> None:
    """Where texts part, the two tokens are equal or neighbours in bfloat16 by the logits that one of them was chosen
    from, and ours are as near to float32 as transformers' own.
    """
    module = copy.deepcopy(architecture(name)).to(torch.bfloat16)

    found = partings(wrapped(module), rows(12, 5, 12, 20, 1, 7, 9, 30), new=12, end=EOS)

    if name not in ROUTED:
        assert all(one.near_tie for one in found), found
    if found:
        ours, theirs = (np.median([getattr(one, which) for one in found]) for which in ("off", "their_off"))
        assert ours <= 2 * theirs, found


def test_a_gap_that_is_no_near_tie_is_told() -> None:
    """The measure itself: texts made to part where float32 and both tables are two steps or a thousand apart."""
    module = copy.deepcopy(architecture("llama")).to(torch.bfloat16)
    prompt = rows(12)[0]
    want, table = their_text(module, prompt, 4)
    second = int(table[2].float().topk(2).indices[1])
    wrong = [*want[:2], second, want[3]]

    found = parting(module, prompt, wrong, want, (table, table))

    gap = abs(float(table[2][second].float() - table[2][want[2]].float()))
    size = float(table[2].float().abs().max())
    assert found.place == 2 and found.ours == found.theirs > 1 and not found.near_tie
    assert gap / (size * 2**-7) <= found.theirs <= gap / (size * 2**-10)
    assert found.off == found.their_off < 20
    assert [step_at(value, torch.bfloat16) for value in (1.0, 1.9, -2.0, 255.0)] == [2**-7, 2**-7, 2**-6, 1.0]
    broken = table.clone()
    broken[2, second] = broken[2, want[2]]
    assert parting(module, prompt, wrong, want, (broken, table)).near_tie


@pytest.mark.parametrize("name", NAMES)
def test_completions_are_generation_and_scores(name: str) -> None:
    """``complete``, which crops one cache, gives what ``generate`` and ``loglikelihood`` give prompt by prompt."""
    module = architecture(name)
    model = wrapped(module)
    trunk = rows(24)[0]
    prompts, targets = [trunk, trunk[:20], [*trunk[:20], 9, 8], [7, 7]], rows(3, 1, 4, 6, seed=4)

    found = complete(model, prompts, targets, max_new_tokens=8)

    written = model.generate(prompts, max_new_tokens=8)
    scored = model.loglikelihood(list(zip(prompts, targets, strict=True)), bos="none")
    for one, text, scores in zip(found, written, scored, strict=True):
        assert one.token_ids == text.token_ids
        np.testing.assert_allclose(present(one.scores).logprobs, scores.logprobs, atol=1e-4)


class TestRotationsThatDependOnLength:
    """LongRoPE and dynamic NTK: original length 32 and 64, crossed by prompts, by continuations and by targets."""

    @staticmethod
    def plain(module: Any, prompt: list[int], new: int) -> tuple[int, ...]:
        """Greedy decoding by plain forward passes, from a model that has seen no other text."""
        ids = list(prompt)
        with torch.no_grad():
            for _ in range(new):
                ids.append(int(module(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
        made = ids[len(prompt) :]
        return tuple(made[: made.index(EOS)] if EOS in made else made)

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(("name", "turn"), [("phi3_longrope", 32), ("llama_dynamic", 64)])
    def test_generation(self, name: str, turn: int) -> None:
        model = wrapped(architecture(name, seed=1))
        prompts = rows(turn - 2, 4, turn + 6, turn - 8, turn)
        want = [self.plain(model.module, prompt, 12) for prompt in prompts]

        assert [one.token_ids for one in model.generate(prompts, max_new_tokens=12)] == want
        assert [model.generate([p], max_new_tokens=12)[0].token_ids for p in prompts] == want
        if name == "phi3_longrope":
            assert [own_generate(model.module, prompt, 12) for prompt in prompts] == want

    @pytest.mark.parametrize(("name", "turn"), [("phi3_longrope", 32), ("llama_dynamic", 64)])
    def test_completion_and_scores(self, name: str, turn: int) -> None:
        model = wrapped(architecture(name, seed=1))
        trunk = rows(turn + 8)[0]
        prompts = [trunk[: turn - 2], trunk, trunk[: turn - 9], trunk[:turn], trunk[: turn - 3]]
        targets = rows(5, 2, 3, 4, 1, seed=4)
        want = [self.plain(model.module, prompt, 10) for prompt in prompts]

        found = complete(model, prompts, targets, max_new_tokens=10)
        scored = model.loglikelihood(list(zip(prompts, targets, strict=True)), bos="none")

        assert [one.token_ids for one in found] == want
        for prompt, target, one, scores in zip(prompts, targets, found, scored, strict=True):
            truth = own_logprobs(model.module, prompt, target)
            np.testing.assert_allclose(scores.logprobs, truth, atol=1e-4)
            np.testing.assert_allclose(present(one.scores).logprobs, truth, atol=1e-4)

    def test_a_long_text_leaves_nothing_behind(self) -> None:
        """A text of just the original length is rotated as such, whatever was read before it."""
        model = wrapped(architecture("llama_dynamic", seed=2))
        text, longer = rows(64, 100)
        before = model.module(input_ids=torch.tensor([text])).logits

        model.module(input_ids=torch.tensor([longer]))

        assert torch.equal(model.module(input_ids=torch.tensor([text])).logits, before)


@pytest.mark.parametrize("name", ["gpt2", "llama_dynamic"])
def test_a_text_beside_a_tree_of_more_nodes_than_the_context(name: str) -> None:
    """Padding counted on beyond the last row of a table of positions, and beyond the length that turns a rotation."""
    module = architecture(name, **({"n_positions": 64} if name == "gpt2" else {}))
    trunk = rows(24)[0]
    requests = [(trunk, tail) for tail in rows(*[20] * 6, seed=1)]
    requests += [(text[:50], text[50:]) for text in rows(60, 60, 60, seed=5)]

    scored = wrapped(module).loglikelihood(requests, bos="none")

    for (prefix, target), scores in zip(requests, scored, strict=True):
        np.testing.assert_allclose(scores.logprobs, own_logprobs(module, prefix, target), atol=1e-4)


def test_a_model_that_fails_with_a_cache_is_read_whole() -> None:
    """Layers of states alone do not tell transformers' cache how long a text is, and a forward pass with it fails."""
    module = architecture.__wrapped__("lfm2", layer_types=["conv"] * 3)  # a list is no key of its cache
    model = wrapped(module)
    trunk = rows(20)[0]
    prompts, targets = [trunk, [*trunk[:12], 9]], rows(3, 5, seed=4)
    with pytest.raises(ValueError, match="Attention layers"):
        module(input_ids=torch.tensor([trunk]), use_cache=True)

    found = complete(model, prompts, targets, max_new_tokens=4)

    for prompt, target, one in zip(prompts, targets, found, strict=True):
        assert one.token_ids == TestRotationsThatDependOnLength.plain(module, prompt, 4)
        np.testing.assert_allclose(present(one.scores).logprobs, own_logprobs(module, prompt, target), atol=1e-4)


def test_a_window_longer_than_the_trial_of_a_cache_of_its_own() -> None:
    """MiniMax's cache tells the length of its first layer, which keeps no keys: windows are masked too short."""
    model = wrapped(architecture("minimax", sliding_window=24))
    prompts = rows(18, 23, 30)

    found = [one.token_ids for one in model.generate(prompts, max_new_tokens=8)]

    assert found == [TestRotationsThatDependOnLength.plain(model.module, prompt, 8) for prompt in prompts]


@pytest.mark.parametrize("window", [24, 100])
@pytest.mark.parametrize("shared", [16, 60])
def test_windows_by_the_index_in_the_row(window: int, shared: int) -> None:
    """GPT-Neo's windows count the nodes of a pack: trees that are longer than one score as single passes do."""
    module = architecture("gpt_neo", window_size=window, max_position_embeddings=512)
    trunk = rows(shared)[0]
    requests = [(trunk, tail) for tail in rows(*[min(24, window - 8)] * 12, seed=1)]

    scored = wrapped(module).loglikelihood(requests, bos="none")

    for (prefix, target), scores in zip(requests, scored, strict=True):
        np.testing.assert_allclose(scores.logprobs, own_logprobs(module, prefix, target), atol=1e-4)
