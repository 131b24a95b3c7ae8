"""Weights of one input moved together: the same products, no memory more, and only as long as they are the layers'."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lm_audit.models.kernels import joint_weights
from lm_audit.models.kernels.joint_weights import JointWeights
from tests.models.architectures import architecture

IDS = torch.tensor([[5, 6, 7, 8, 9]])


@pytest.fixture(autouse=True)
def on_this_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_weights, "_WHERE", "cpu")


def made(name: str) -> tuple[Any, JointWeights]:
    module = copy.deepcopy(architecture(name))
    return module, JointWeights(module)


@torch.no_grad()
@pytest.mark.parametrize(("name", "shared"), [("llama", 5), ("llama_bias", 5), ("phi", 3), ("gpt2", 0)])
def test_layers_of_one_input_compute_together(name: str, shared: int) -> None:
    module = copy.deepcopy(architecture(name))
    for one in module.parameters():
        one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(one.ndim)))
    want = module(input_ids=IDS).logits

    joint = JointWeights(module)

    assert joint.layers == shared * module.config.num_hidden_layers
    assert torch.equal(module(input_ids=IDS).logits, want)
    with joint():
        assert sum("forward" in vars(one) for one in module.modules()) == joint.layers
        assert torch.allclose(module(input_ids=IDS).logits, want, atol=1e-4)
    assert not any("forward" in vars(one) for one in module.modules())


def test_weights_are_moved_and_not_copied() -> None:
    module, _ = made("llama")

    places = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in module.parameters()}
    assert sum(places.values()) == sum(one.nbytes for one in module.parameters())
    attention = module.model.layers[0].self_attn
    parts = [attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]
    assert len({one.untyped_storage().data_ptr() for one in parts}) == 1


def test_training_goes_on_and_the_products_with_it() -> None:
    module, joint = made("llama_bias")
    before = module(input_ids=IDS).logits.detach()

    module.train()
    step = torch.optim.SGD(module.parameters(), lr=0.5)
    module(input_ids=IDS, labels=IDS).loss.backward()
    step.step()
    module.eval()

    with torch.inference_mode(), joint():
        after = module(input_ids=IDS).logits
        assert sum("forward" in vars(one) for one in module.modules()) == joint.layers
    assert not torch.allclose(after, before, atol=1e-2)
    with torch.inference_mode():
        assert torch.allclose(after, module(input_ids=IDS).logits, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_layer_with_other_weights_computes_by_itself(part: str) -> None:
    module, joint = made("llama_bias")
    layer = module.model.layers[0].self_attn.k_proj
    getattr(layer, part).data = getattr(layer, part) + 1.0

    want = module(input_ids=IDS).logits
    with joint():
        assert "forward" not in vars(layer)
        assert torch.allclose(module(input_ids=IDS).logits, want, atol=1e-4)


def test_a_model_of_another_dtype_computes_by_itself() -> None:
    module, joint = made("llama")
    module.to(torch.float64)

    with torch.inference_mode(), joint():
        assert not any("forward" in vars(one) for one in module.modules())


def test_moved_weights_are_saved_as_ever(tmp_path: Path) -> None:
    plain, (module, _) = architecture("llama"), made("llama")

    module.save_pretrained(tmp_path)
    save_file(dict(module.model.layers.state_dict()), tmp_path / "layers.safetensors")

    saved = load_file(tmp_path / "model.safetensors")
    for name, weight in plain.state_dict().items():
        assert name not in saved or torch.equal(saved[name], weight), name
    assert {name for name in saved if "self_attn" in name} == {n for n in plain.state_dict() if "self_attn" in n}
    assert len(load_file(tmp_path / "layers.safetensors")) == len(plain.model.layers.state_dict())


def test_a_weight_that_two_layers_share_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    module = copy.deepcopy(architecture("llama"))
    for layer in module.model.layers:
        layer.mlp.up_proj.weight = layer.mlp.gate_proj.weight

    assert JointWeights(module).layers == 3 * module.config.num_hidden_layers
