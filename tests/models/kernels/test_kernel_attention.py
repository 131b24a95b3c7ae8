"""Attention by kernels in place of masks: what is around them, with the kernels themselves done by masks."""

from __future__ import annotations

import copy
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lm_audit.models import LanguageModel
from lm_audit.models.generation.in_slots.slot_check import find_slots
from lm_audit.models.generation.in_slots.slot_model import Part
from lm_audit.models.generation.in_slots.step_graph import Stepper, disagreement
from lm_audit.models.kernels import attending as kernel_attention
from lm_audit.models.kernels.attending import KernelUnfit
from lm_audit.models.scoring.runner import Way
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import architecture
from tests.models.kernels.plain_kernels import PlainKernels

CPU = torch.device("cpu")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def by(monkeypatch: pytest.MonkeyPatch) -> PlainKernels:
    plain = PlainKernels()
    monkeypatch.setattr(kernel_attention, "kernels", lambda device: plain)
    return plain


def filled(name: str) -> tuple[Stepper, torch.Tensor]:
    """A stepper over three slots of 30, 3 and 60 (all) tokens, and the lengths."""
    slots = find_slots(copy.deepcopy(architecture(name)), CPU)
    assert slots is not None
    model = slots.model
    model.allocate(3, 60)
    generator = torch.Generator().manual_seed(5)
    rows = [torch.randint(3, 250, (n,), generator=generator).tolist() for n in (30, 3, 60)]
    with torch.inference_mode():
        model.read([Part(slot, 0, row, 1) for slot, row in enumerate(rows)], 128, 64)
    lengths = torch.tensor([30, 3, 60])
    return Stepper(model, torch.tensor([7, 8, 9]), lengths), lengths


@torch.inference_mode()
@pytest.mark.parametrize("name", ["llama", "qwen3", "mistral_swa", "gemma3_text", "gpt2", "gpt_neox", "qwen2_swa"])
def test_a_step_by_lengths_is_the_step_by_masks(by: PlainKernels, name: str) -> None:
    stepper, _ = filled(name)
    model = stepper._model

    plain = stepper._plain(3, 60)
    found = stepper._plain(3, 0)

    assert by.calls["rows"] == model.shape.layers
    assert torch.allclose(found.log_softmax(-1), plain.log_softmax(-1), atol=2e-4)
    by_length, by_masks = (lambda: stepper._plain(3, 0)), (lambda: stepper._plain(3, 60))
    agrees, logits = stepper._tried_by_length(by_length, plain, by_masks)
    assert agrees and logits is plain
    by.wrong = 0.5
    agrees, logits = stepper._tried_by_length(by_length, plain, by_masks)
    assert not agrees and torch.allclose(logits, plain, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("name", ["llama4_text"])
def test_other_attention_keeps_its_masks(by: PlainKernels, name: str) -> None:
    stepper, _ = filled(name)

    with pytest.raises(KernelUnfit):
        stepper._plain(3, 0)
    plain = stepper._plain(3, 60)
    agrees, _ = stepper._tried_by_length(lambda: stepper._plain(3, 0), plain, lambda: stepper._plain(3, 60))
    assert not agrees


@torch.inference_mode()
def test_the_models_own_attention_is_back_afterwards(by: PlainKernels) -> None:
    stepper, _ = filled("llama")
    module = stepper._model.module
    ids = torch.tensor([[5, 6, 7]])
    before = module(input_ids=ids).logits

    stepper._plain(3, 0)
    by.supported = lambda *given: False  # type: ignore[method-assign]
    with pytest.raises(KernelUnfit):
        stepper._plain(3, 0)
    made = by.calls["rows"]

    assert torch.equal(module(input_ids=ids).logits, before)
    assert by.calls["rows"] == made


def half(name: str) -> LanguageModel:
    module = copy.deepcopy(architecture(name)).to(torch.bfloat16)
    return LanguageModel(module, byte_tokenizer(128), name=name)


TREE = [([5, 6, 7, *range(20, 60), *tail], [9, 10]) for tail in ([3], [4, 5], [200, 3, 9, 8], [])] + [([90, 91], [3])]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt_neox"])
def test_trees_by_the_kernel_get_their_own_scores(by: PlainKernels, name: str) -> None:
    model = half(name)
    found = model.loglikelihood(TREE, bos="none")

    assert model._engine._way is Way.TREE_BY_KERNEL
    assert by.calls["seen"]
    alone = [half(name).loglikelihood([one], bos="none")[0] for one in TREE]
    for one, other in zip(found, alone, strict=True):
        assert np.abs(one.logprobs - other.logprobs).max() < 0.1


def test_a_kernel_that_is_wrong_is_found_out(by: PlainKernels) -> None:
    by.wrong = 0.5
    model = half("llama")

    model.loglikelihood(TREE, bos="none")

    assert model._engine._way is not Way.TREE_BY_KERNEL


def test_half_precision_hands_keys_on() -> None:
    model = half("llama")

    model.loglikelihood(TREE, bos="none")

    assert model._engine._way is Way.TREE_AND_CACHE


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_kernels_agree_with_masks_in_tritons_interpreter() -> None:
    command = [sys.executable, "-m", "tests.models.kernels.attention_kernel_check"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT / 'harness'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "kernels agree" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("single", [True, False])
def test_a_step_of_nan_is_no_step_that_agrees(single: bool) -> None:
    plain = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    plain[:, 7] = -torch.inf  # a token that the model never gives
    broken, further, idle = plain.clone(), plain.clone(), plain.clone()
    broken[1] = torch.nan
    further[:, 7] = 0.0
    idle[1] = torch.nan
    assert disagreement(plain.clone(), plain, single=single) is None
    assert disagreement(broken, plain, single=single) is not None
    assert disagreement(further, plain, single=single) is not None
    assert disagreement(plain, idle, single=single) is None, "nothing to compare with"
    assert disagreement(plain + 3e-1 * torch.eye(2, 50), plain, single=True) is not None
