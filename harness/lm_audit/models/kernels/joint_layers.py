"""Linear layers of one input (queries, keys and values; gate and up) as one product, for the length of a pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def layers_of_one_input(module: Any, linears: Sequence[nn.Linear]) -> list[list[nn.Linear]]:
    """Layers that a pass calls one after the other with one input, together; every other one by itself."""
    calls: list[tuple[nn.Linear, Any]] = []

    def note(layer: Any, given: Any) -> None:
        calls.append((layer, given[0] if given else None))

    handles = [layer.register_forward_pre_hook(note) for layer in linears]
    try:
        device = module.get_input_embeddings().weight.device
        module(input_ids=torch.ones(1, 2, dtype=torch.long, device=device), use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    once = {layer for layer in linears if sum(part is layer for part, _ in calls) == 1}
    groups: list[list[nn.Linear]] = []
    before: Any = None
    for layer, given in calls:
        if groups and given is before and given is not None and layer in once and groups[-1][-1] in once:
            groups[-1].append(layer)
        elif layer in once:
            groups.append([layer])
        before = given
    return groups + [[layer] for layer in linears if layer not in once]


def joint_bias(layers: Sequence[nn.Linear]) -> Tensor | None:
    """The biases of all layers one behind the other, zeros for one that has none; ``None`` where none has."""
    if all(layer.bias is None for layer in layers):
        return None
    return torch.cat(
        [layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.detach() for layer in layers]
    )


class JointLayers(ABC):
    """Layers of one input: the first computes for all, the others take their part of what it has computed."""

    def __init__(self, layers: Sequence[nn.Linear]):
        self.layers = tuple(layers)
        self._sizes = [layer.out_features for layer in layers]
        self._input: Tensor | None = None
        self._parts: tuple[Tensor, ...] = ()

    @abstractmethod
    def product(self, x: Tensor) -> Tensor:
        """What all layers give for ``x`` [..., in], one behind the other [..., sum of out]."""

    def forwards(self) -> Iterator[tuple[nn.Linear, Any]]:
        """What each layer computes by."""
        if len(self.layers) == 1:
            yield self.layers[0], self.product
            return
        yield self.layers[0], self._first
        for place, layer in enumerate(self.layers[1:], 1):
            yield layer, self._taker(place, layer)

    def forget(self) -> None:
        """Let go of the last input."""
        self._input, self._parts = None, ()

    def _first(self, x: Tensor) -> Tensor:
        self._input, self._parts = x, self.product(x).split(self._sizes, -1)  # type: ignore[no-untyped-call]
        return self._parts[0]

    def _taker(self, place: int, layer: nn.Linear) -> Any:
        def forward(x: Tensor) -> Tensor:
            if x is self._input:
                return self._parts[place]
            return nn.functional.linear(x, layer.weight, layer.bias)

        return forward


@contextmanager
def replaced(groups: Sequence[JointLayers]) -> Iterator[None]:
    """The layers compute by their groups for as long as the context lasts."""
    taken: list[Any] = []
    try:
        for group in groups:
            for layer, forward in group.forwards():
                layer.__dict__["forward"] = forward
                taken.append(layer)
        yield
    finally:
        for layer in taken:
            layer.__dict__.pop("forward", None)
        for group in groups:
            group.forget()
