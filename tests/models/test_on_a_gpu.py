"""What only a GPU can show: NaN in steps that come from kernels and graphs, and kernels and graphs that are wrong.

The same on a CPU, with kernels done by masks: ``test_kernel_attention.py``, ``test_generation.py``.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import LanguageModel
from lm_audit.models.generation.in_slots.step_graph import Stepper, disagreement
from lm_audit.models.kernels import attending as kernel_attention
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.architectures import architecture
from tests.models.pretrained import llama, pretrained_tokenizer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

PROMPTS = [[5, 6, 7, 8], [20, 21, 22], [30, 31, 32, 33, 34, 35], [40, 41]]
NEW = 12


def on_the_card(dtype: torch.dtype = torch.float32) -> LanguageModel:
    """A Llama whose texts do not end of themselves."""
    module = copy.deepcopy(architecture("llama")).to(device="cuda", dtype=dtype)
    module.config.eos_token_id = module.generation_config.eos_token_id = None
    tokenizer = byte_tokenizer(128)
    pretrained_tokenizer(tokenizer).eos_token = None
    return LanguageModel(module, tokenizer, name="broken")


def texts(model: LanguageModel, prompts: list[list[int]] = PROMPTS) -> list[tuple[int, ...]]:
    return [one.token_ids for one in model.generate(prompts, max_new_tokens=NEW)]


@torch.no_grad()
def theirs(model: LanguageModel, prompt: list[int]) -> tuple[int, ...]:
    row = torch.tensor([prompt], device="cuda")
    mask = torch.ones_like(row)
    made = llama(model.module).generate(row, attention_mask=mask, max_new_tokens=NEW, do_sample=False, pad_token_id=0)
    return tuple(made[0, len(prompt) :].tolist())


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[Stepper]:
    """The steppers of which a step came from a graph."""
    found: list[Stepper] = []
    plain = Stepper._capture

    def capture(self: Stepper, *given: Any) -> None:
        plain(self, *given)
        found.extend([self] if self._graphs else [])

    monkeypatch.setattr(Stepper, "_capture", capture)
    return found


def test_texts_from_graphs_and_kernels_are_those_of_transformers(captured: list[Stepper]) -> None:
    model = on_the_card()

    assert texts(model) == [theirs(model, prompt) for prompt in PROMPTS]
    assert captured
    assert model.slots is not None and model.slots.model.steps_by_length


def test_nan_in_a_prompt_names_it(captured: list[Stepper]) -> None:
    model = on_the_card()
    with torch.no_grad():
        llama(model.module).model.embed_tokens.weight[31] = float("nan")

    with pytest.raises(ModelError, match="model broken answered prompt 2 with NaN"):
        texts(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nan_in_the_middle_of_a_text_names_its_prompt(dtype: torch.dtype, captured: list[Stepper]) -> None:
    """The token that a text goes on with is broken: NaN first comes from a graph, in one row among sound ones."""
    model = on_the_card(dtype)
    written = texts(model)
    elsewhere = [*map(set, written), {token for prompt in PROMPTS for token in prompt}]
    own = [[token for token in text[:-1] if sum(token in other for other in elsewhere) == 1] for text in written]
    index = next(index for index, tokens in enumerate(own) if tokens)
    captured.clear()
    table = llama(model.module).model.embed_tokens.weight
    assert table.data_ptr() != llama(model.module).lm_head.weight.data_ptr()
    with torch.no_grad():
        table[own[index][-1]] = float("nan")

    with pytest.raises(ModelError, match=f"model broken answered prompt {index} with NaN"):
        texts(model)
    assert captured
    if dtype == torch.float32:
        sound = [prompt for place, prompt in enumerate(PROMPTS) if place != index]
        assert texts(model, sound) == [text for place, text in enumerate(written) if place != index]


def test_a_kernel_that_gives_nan_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    model = on_the_card()
    want = [theirs(model, prompt) for prompt in PROMPTS]
    sound: Any = kernel_attention.kernels(torch.device("cuda"))

    class Broken:
        supported, seen, attend_seen = map(staticmethod, (sound.supported, sound.seen, sound.attend_seen))

        @staticmethod
        def attend_rows(*given: Any, **named: Any) -> torch.Tensor:
            return torch.full_like(sound.attend_rows(*given, **named), float("nan"))

    monkeypatch.setattr(kernel_attention, "kernels", lambda device: Broken)
    with caplog.at_level("INFO"):
        assert texts(model) == want
    assert "steps attend through masks" in caplog.text


def test_a_graph_that_gives_nan_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    model = on_the_card()
    want = [theirs(model, prompt) for prompt in PROMPTS]
    plain = Stepper._plain

    def step(self: Stepper, width: int, extent: int) -> torch.Tensor:
        logits = plain(self, width, extent)
        return logits * float("nan") if torch.cuda.is_current_stream_capturing() else logits

    monkeypatch.setattr(Stepper, "_plain", step)
    with caplog.at_level("INFO"):
        assert texts(model) == want
    assert "a step gives no CUDA graph" in caplog.text


def test_the_guard_on_the_card() -> None:
    plain = torch.randn(3, 50, device="cuda")
    broken = plain.clone()
    broken[1, 4] = float("nan")
    for single in (True, False):
        assert disagreement(plain.clone(), plain, single=single) is None
        assert disagreement(broken, plain, single=single) is not None
        assert disagreement(broken, broken.clone(), single=single) is None
