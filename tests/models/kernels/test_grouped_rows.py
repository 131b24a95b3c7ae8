"""Attention of a decoding step on a CPU, all rows and heads in one product: what masks and single heads give."""

from __future__ import annotations

import copy

import pytest
import torch

from lm_audit.models.generation.in_slots.slot_check import find_slots
from lm_audit.models.generation.in_slots.slot_model import Part, SlotModel
from lm_audit.models.generation.in_slots.step_graph import Stepper
from lm_audit.models.kernels.grouped_rows import GroupedRows
from tests.models.architectures import architecture
from tests.models.kernels.plain_kernels import PlainKernels


@pytest.mark.parametrize("window", [None, 1, 4, 50])
@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (6, 2), (8, 1)])
def test_rows_of_their_own_lengths(heads: int, key_heads: int, window: int | None) -> None:
    generator = torch.Generator().manual_seed(heads)
    query = torch.randn(5, 1, heads, 16, generator=generator).transpose(1, 2)
    room = torch.randn(2, 9, key_heads, 30, 16, generator=generator)
    key, value = (one[:5, :, :21] for one in room)
    lengths = torch.tensor([20, 0, 7, 1, 12])
    by = GroupedRows()

    found = by.attend_rows(query, key, value, lengths, 0.25, window)

    want = PlainKernels().attend_rows(query, key, value, lengths, 0.25, window)
    assert by.supported(query, key, value)
    assert found.shape == want.shape and torch.allclose(found, want, atol=1e-5)
    assert not by.supported(query.bfloat16(), key.bfloat16(), value.bfloat16())
    assert not by.supported(torch.cat([query, query], 2), key, value)


def stepper(name: str) -> Stepper:
    """Steps of three slots of 30, 3 and 12 tokens."""
    slots = find_slots(copy.deepcopy(architecture(name)), torch.device("cpu"))
    assert slots is not None
    model: SlotModel = slots.model
    model.allocate(3, 60)
    generator = torch.Generator().manual_seed(5)
    rows = [torch.randint(3, 250, (n,), generator=generator).tolist() for n in (30, 3, 12)]
    with torch.inference_mode():
        model.read([Part(slot, 0, row, 1) for slot, row in enumerate(rows)], 128, 64)
    return Stepper(model, torch.tensor([7, 8, 9]), torch.tensor([30, 3, 12]))


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "fits"), [("llama", True), ("gemma3_text", True), ("gpt2", True), ("llama4_text", False)]
)
def test_steps_are_taken_so_where_they_are_the_same(name: str, fits: bool) -> None:
    steps = stepper(name)

    first, again = steps.logits(3, 40), steps.logits(3, 40)

    assert steps._model.steps_by_length is (name != "llama4_text"), "whose layers look at chunks of the text"
    assert torch.allclose(first.log_softmax(-1), again.log_softmax(-1), atol=2e-4)


@torch.inference_mode()
def test_attention_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = GroupedRows.attend_rows
    monkeypatch.setattr(GroupedRows, "attend_rows", lambda self, *given: sound(self, *given) * 1.5)
    steps = stepper("llama")

    first, again = steps.logits(3, 40), steps.logits(3, 40)

    assert steps._model.steps_by_length is False
    assert torch.equal(first, again)
