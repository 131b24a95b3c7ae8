"""A device that is a step ahead of the thread that takes its tokens in: the same texts, whatever it did in vain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lm_audit.models import LanguageModel
from lm_audit.models.generation import memory
from lm_audit.models.generation.in_slots import seats, slot_decoding
from lm_audit.models.generation.in_slots.step_graph import Stepper
from lm_audit.models.generation.shared_prefix import complete
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.small_models import small_llama
from tests.present import present

PROMPTS = ["a", "some words", "z" * 30, "some words", "é", "some other words", "b" * 59, "<think>"]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(small_llama(initializer_range=0.6), byte_tokenizer(64), name="small")


def ahead(patch: pytest.MonkeyPatch, slots: int) -> None:
    """As on a GPU: steps ahead, widths halved, at most ``slots`` rows."""
    patch.setattr(seats, "runs_beside", lambda device: True)
    patch.setattr(
        slot_decoding,
        "groups",
        lambda *given: [replace(one, slots=min(slots, one.slots)) for one in memory.groups(*given)],
    )


ASKED: dict[str, dict[str, Any]] = {
    "greedy": {"max_new_tokens": 16},
    "one token": {"max_new_tokens": 1},
    "sampled": {"max_new_tokens": 16, "temperature": 1.0, "seed": 3},
    "stop strings": {"max_new_tokens": 16, "stop": ["a", "\n", "Q", "e"]},
    "thoughts closed from outside": {"max_new_tokens": 5, "thinking_tokens": 3, "temperature": 1.0},
    "thoughts not allowed": {"max_new_tokens": 5, "thinking_tokens": 0},
}


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize("asked", ASKED)
def test_generation(model: LanguageModel, monkeypatch: pytest.MonkeyPatch, asked: str, slots: int) -> None:
    plain = model.generate(PROMPTS, **ASKED[asked])
    ahead(monkeypatch, slots)

    assert model.generate(PROMPTS, **ASKED[asked]) == plain
    if "closed" in asked:
        assert any(one.thought_cut for one in plain)


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_completion(model: LanguageModel, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    prompts = [list(model.tokenizer(prompt).input_ids) for prompt in PROMPTS[:6]]
    targets = [[50 + place] * (1 + place % 3) for place in range(len(prompts))]
    asked: dict[str, Any] = {"max_new_tokens": 12, "enough": lambda index, text: len(text) > 3 + index}
    plain = complete(model, prompts, targets, **asked)
    ahead(monkeypatch, slots)

    found = complete(model, prompts, targets, **asked)

    assert {one.finish_reason for one in plain} >= {"enough"}
    for one, other in zip(found, plain, strict=True):
        assert replace(one, scores=None) == replace(other, scores=None)
        assert present(one.scores).logprobs == pytest.approx(present(other.scores).logprobs, abs=1e-4)


@pytest.mark.parametrize("new", [1, 2, 5])
def test_no_step_is_taken_for_rows_that_have_no_room(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch, new: int
) -> None:
    taken: list[int] = []
    step = Stepper.logits

    def counted(self: Stepper, width: int, extent: int) -> Any:
        taken.append(width)
        return step(self, width, extent)

    monkeypatch.setattr(Stepper, "logits", counted)
    ahead(monkeypatch, 8)

    replies = model.generate(["a", "some words"], max_new_tokens=new)

    assert [len(one.token_ids) for one in replies] == [new, new]
    assert len(taken) == new - 1
