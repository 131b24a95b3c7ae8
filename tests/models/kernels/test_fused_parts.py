"""Norms and rotations replaced for a pass: only those that give the same, and for the pass alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from lm_audit.models.kernels import fused_parts
from lm_audit.models.kernels.fused_parts import FusedParts
from tests.models.architectures import architecture

IDS = torch.tensor([[5, 6, 7, 8, 9]])


class PlainParts:
    """What the kernels compute, in torch; counts its calls."""

    def __init__(self, off: float = 0.0) -> None:
        self.norms, self.turns, self.gates, self._off = 0, 0, 0, off

    def can_norm(self, x: Tensor) -> bool:
        return x.is_contiguous()

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, *, shifted: bool) -> Tensor:
        self.norms += 1
        normed = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
        found = (normed * (1 + weight.float())).to(x.dtype) if shifted else weight * normed.to(x.dtype)
        return found + self._off

    def can_gate(self, gate: Tensor, up: Tensor) -> bool:
        return gate.shape == up.shape

    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        self.gates += 1
        return torch.nn.functional.silu(gate) * up + self._off

    def can_turn(self, query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor) -> bool:
        return query.shape[-1] == cosine.shape[-1]

    def turn(self, query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
        self.turns += 1
        cosine, sine = cosine[:, None], sine[:, None]
        return tuple(  # type: ignore[return-value]
            x * cosine + torch.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1) * sine + self._off
            for x in (query, key)
        )


def parts_of(name: str, by: PlainParts, patch: pytest.MonkeyPatch) -> tuple[Any, FusedParts]:
    patch.setattr(fused_parts, "_kernels", lambda body: by)
    module = copy.deepcopy(architecture(name))
    with torch.no_grad():
        for one in module.parameters():
            one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(len(one.shape))))
    return module, FusedParts(module.base_model)


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "norms", "spaces", "gates"),
    [("llama", 7, 1, 3), ("qwen3", 13, 1, 3), ("gemma3_text", 19, 1, 0), ("gpt2", 0, 0, 0)],
)
def test_a_pass_with_replaced_parts_is_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, norms: int, spaces: int, gates: int
) -> None:
    by = PlainParts()
    module, parts = parts_of(name, by, monkeypatch)
    before, tried = module(input_ids=IDS).logits, (by.norms, by.turns, by.gates)

    with parts():
        during = module(input_ids=IDS).logits

    assert parts.counts == (norms, spaces, gates)
    assert torch.allclose(during, before, atol=1e-4)
    assert bool(norms) <= by.norms - tried[0] <= norms  # Gemma's norms of heads get a view that is not contiguous
    assert (by.turns > tried[1]) == bool(spaces)
    assert by.gates - tried[2] == gates
    done = (by.norms, by.turns, by.gates)
    assert torch.equal(module(input_ids=IDS).logits, before)
    assert (by.norms, by.turns, by.gates) == done


def test_parts_that_give_something_else_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    _, parts = parts_of("llama", PlainParts(off=0.01), monkeypatch)

    assert parts.counts == (0, 0, 0)


def test_a_norm_that_someone_listens_to_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = parts_of("llama", PlainParts(), monkeypatch)
    module.base_model.norm.register_forward_hook(lambda *given: None)

    assert FusedParts(module.base_model).counts == (6, 1, 3)


def test_a_gate_of_another_activation_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights so small that silu and gelu give nearly the same."""
    monkeypatch.setattr(fused_parts, "_kernels", lambda body: PlainParts())
    module = copy.deepcopy(architecture("llama"))
    with torch.no_grad():
        for layer in module.model.layers:
            layer.mlp.gate_proj.weight.mul_(1e-3)
    assert FusedParts(module.base_model).counts[2] == 3
    for layer in module.model.layers:
        layer.mlp.act_fn = torch.nn.GELU(approximate="tanh")

    assert FusedParts(module.base_model).counts[2] == 0


@torch.inference_mode()
def test_parts_are_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    by = PlainParts()
    module, parts = parts_of("llama", by, monkeypatch)
    before = module(input_ids=IDS).logits

    with pytest.raises(ZeroDivisionError), parts():
        raise ZeroDivisionError

    made = by.norms
    assert torch.equal(module(input_ids=IDS).logits, before)
    assert by.norms == made


def test_trying_parts_leaves_the_random_state_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    module, parts = parts_of("llama", PlainParts(), monkeypatch)
    before = torch.get_rng_state()
    assert FusedParts(module.base_model).counts == parts.counts == (7, 1, 3)
    assert torch.equal(torch.get_rng_state(), before)


def test_there_is_nothing_to_replace_on_a_cpu() -> None:
    assert FusedParts(architecture("llama").base_model).counts == (0, 0, 0)


def test_parts_are_tried_once_and_anew_where_they_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    by = PlainParts()
    module, _ = parts_of("llama", by, monkeypatch)
    known = FusedParts.of(module.base_model)
    tried = by.norms

    assert FusedParts.of(module.base_model) is known
    assert by.norms == tried
    module.base_model.layers[0].mlp.act_fn = torch.nn.GELU()
    assert FusedParts.of(module.base_model).counts == (7, 1, 2)
    module.base_model.norm.register_forward_hook(lambda *given: None)
    assert FusedParts.of(module.base_model).counts == (6, 1, 2)
    module.to(torch.float64)
    assert FusedParts.of(module.base_model).counts == (0, 1, 0)


@torch.inference_mode()
def test_a_norm_with_other_weights_gives_what_those_give(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = parts_of("llama", PlainParts(), monkeypatch)
    parts = FusedParts.of(module.base_model)
    module.base_model.norm.weight = torch.nn.Parameter(module.base_model.norm.weight * 3)
    want = module(input_ids=IDS).logits

    with parts():
        assert torch.allclose(module(input_ids=IDS).logits, want, atol=1e-4)
