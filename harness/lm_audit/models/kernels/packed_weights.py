"""A model's products on a CPU by oneDNN over weights that were laid out once, for the length of a call.

A plain product lays its weights out anew each time, or reads them as they are. Layers that read the same input
(queries, keys and values; gate and up) are one product. The copy takes as many bytes as the weights once more.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import laid_out, laid_out_product
from lm_audit.models.loading.evaluating import evaluating
from lm_audit.shared.free_memory import available_memory

WORTH = 1000
"""Tokens that a call reads from which on it lays weights out: for fewer that would take longer than it saves."""
_LEAST = 2**24
"""Weights of a model below which its products stay in the cache as they are."""
_MEMORY_SHARE = 0.25
"""Of the memory that is free, for the copy."""
_UNKNOWN = 8 * 2**30
_BATCH = 64
"""Rows for which oneDNN chooses a layout; other numbers are as right and nearly as fast."""
_TOLERANCE = 1e-4
"""Of log-probabilities (nats) of the trial: what float32 in another order stays below."""

_KNOWN: WeakKeyDictionary[Any, PackedWeights | None] = WeakKeyDictionary()


class PackedWeights:
    """The linear layers of a module, each with its weights laid out; layers of one input share a product."""

    def __init__(self, module: CausalModule):
        self._groups = [_Group(part) for part in _groups(module, _linears(module))]
        self.bytes = sum(group.bytes for group in self._groups)

    @property
    def current(self) -> bool:
        """Whether the weights are those that were laid out."""
        return all(group.current for group in self._groups)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The module's layers compute by what was laid out, for as long as the context lasts."""
        replaced: list[Any] = []
        try:
            for group in self._groups:
                for layer, forward in group.forwards():
                    layer.__dict__["forward"] = forward
                    replaced.append(layer)
            yield
        finally:
            for layer in replaced:
                layer.__dict__.pop("forward", None)
            for group in self._groups:
                group.forget()


@contextmanager
def packed(module: CausalModule, tokens: int, wanted: bool | None = None) -> Iterator[None]:
    """A call that reads so many tokens, by packed weights where that is ``wanted``, or (``None``) pays.

    Nothing happens for models that cannot (on a GPU, in half precision, quantised) or whose answers would not be their
    own. The copy is kept for later calls, and made anew where weights have changed.
    """
    found = _of(module, tokens, wanted)
    if found is None:
        yield
        return
    with found():
        yield


def forget(module: CausalModule) -> None:
    """Give the copy's memory back."""
    _KNOWN.pop(module, None)


def _of(module: CausalModule, tokens: int, wanted: bool | None) -> PackedWeights | None:
    if wanted is False or (wanted is None and (tokens < WORTH or not _pays())):
        return None
    known = _KNOWN.get(module)
    if module in _KNOWN and (known is None or known.current):
        return known
    _KNOWN.pop(module, None)
    linears = _linears(module)
    weights = sum(layer.weight.numel() for layer in linears)
    if wanted is None and (weights < _LEAST or 4 * weights > _MEMORY_SHARE * (available_memory() or _UNKNOWN)):
        return None
    _KNOWN[module] = _made(module) if linears else None
    return _KNOWN[module]


def _pays() -> bool:
    """Whether packed products are the faster ones here: not on Intel's processors, whose own library is as fast."""
    return _vendor() != "GenuineIntel"


def _vendor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("vendor_id")), platform.processor())


def _linears(module: Any) -> list[nn.Linear]:
    """The layers that are plain products in float32 on this processor and that nobody has wrapped."""
    return [part for part in module.modules() if type(part) is nn.Linear and _is_plain(part)]


def _is_plain(layer: nn.Linear) -> bool:
    return layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32 and "forward" not in vars(layer)


@torch.inference_mode()
def _made(module: Any) -> PackedWeights | None:
    """The packed weights, where a few random tokens get by them what they get without; ``None`` elsewhere."""
    ids = torch.randint(
        0, int(module.get_input_embeddings().num_embeddings), (1, 9), generator=torch.Generator().manual_seed(20240229)
    )
    try:
        with evaluating(module):
            plain = module(input_ids=ids, use_cache=False).logits.log_softmax(-1)
            made = PackedWeights(module)
            with made():
                found = module(input_ids=ids, use_cache=False).logits.log_softmax(-1)
        off = torch.where((found == plain) | plain.isnan(), 0.0, found - plain).abs().max()
        return made if float(off) <= _TOLERANCE else None
    except Exception:  # whatever a model does with layers that are not its own, or a torch without these operators
        return None


def _groups(module: Any, linears: Sequence[nn.Linear]) -> list[list[nn.Linear]]:
    """Layers that a pass calls one after the other with one input, together; every other one by itself."""
    calls: list[tuple[nn.Linear, Any]] = []

    def note(layer: Any, given: Any) -> None:
        calls.append((layer, given[0] if given else None))

    handles = [layer.register_forward_pre_hook(note) for layer in linears]
    try:
        module(input_ids=torch.ones(1, 2, dtype=torch.long), use_cache=False)
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


class _Group:
    """Layers of one input: the first computes for all, the others take their part of what it has computed."""

    def __init__(self, layers: list[nn.Linear]):
        self._layers = layers
        self._sizes = [layer.out_features for layer in layers]
        weight = (
            torch.cat([layer.weight.detach() for layer in layers]) if len(layers) > 1 else layers[0].weight.detach()
        )
        self._weight = laid_out(weight, _BATCH)
        self._biases = [layer.bias for layer in layers]
        self._bias = self._joint_bias()
        self.bytes = weight.numel() * weight.element_size()
        self._sums = [_sums(layer) for layer in layers]
        self._input: Tensor | None = None
        self._parts: list[Tensor] = []

    def _joint_bias(self) -> Tensor | None:
        if all(bias is None for bias in self._biases):
            return None
        return torch.cat(
            [
                torch.zeros(size) if bias is None else bias.detach()
                for bias, size in zip(self._biases, self._sizes, strict=True)
            ]
        )

    @property
    def current(self) -> bool:
        """Whether none of the layers was given other weights."""
        return all(torch.equal(_sums(layer), before) for layer, before in zip(self._layers, self._sums, strict=True))

    def forwards(self) -> Iterator[tuple[nn.Linear, Any]]:
        """What each layer computes by."""
        if len(self._layers) == 1:
            yield self._layers[0], self._product
            return
        yield self._layers[0], self._first
        for place, layer in enumerate(self._layers[1:], 1):
            yield layer, self._taker(place, layer)

    def forget(self) -> None:
        """Let go of the last input."""
        self._input, self._parts = None, []

    def _product(self, x: Tensor) -> Tensor:
        found: Tensor = laid_out_product(x, self._weight, self._bias)
        return found

    def _first(self, x: Tensor) -> Tensor:
        joint: Any = self._product(x)
        self._input, self._parts = x, list(joint.split(self._sizes, -1))
        return self._parts[0]

    def _taker(self, place: int, layer: nn.Linear) -> Any:
        def forward(x: Tensor) -> Tensor:
            if x is self._input:
                return self._parts[place]
            return nn.functional.linear(x, layer.weight, layer.bias)

        return forward


def _sums(layer: nn.Linear) -> Tensor:
    """A layer's answer to one input, which no change of its weights leaves as it is; as quick as reading them."""
    x = torch.linspace(0.5, 1.5, layer.in_features)
    return nn.functional.linear(x, layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
