"""A model's products on a CPU by oneDNN over weights that were laid out once, for the length of a call.

A plain product lays its weights out anew each time, or reads them as they are. Layers that read the same input
(queries, keys and values; gate and up) are one product. The copy takes as many bytes as the weights once more.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import laid_out, laid_out_product
from lm_audit.models.kernels.joint_layers import JointLayers, joint_bias, layers_of_one_input, replaced
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
        self._groups = [_Group(part) for part in layers_of_one_input(module, _linears(module))]
        self.bytes = sum(group.bytes for group in self._groups)

    @property
    def current(self) -> bool:
        """Whether the weights are those that were laid out."""
        return all(group.current for group in self._groups)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The module's layers compute by what was laid out, for as long as the context lasts."""
        with replaced(self._groups):
            yield


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


class _Group(JointLayers):
    """Layers of one input over weights that were laid out."""

    def __init__(self, layers: list[nn.Linear]):
        super().__init__(layers)
        weight = (
            torch.cat([layer.weight.detach() for layer in layers]) if len(layers) > 1 else layers[0].weight.detach()
        )
        self._weight = laid_out(weight, _BATCH)
        self._bias = joint_bias(layers)
        self.bytes = weight.numel() * weight.element_size()
        self._sums = [_sums(layer) for layer in layers]

    @property
    def current(self) -> bool:
        """Whether none of the layers was given other weights."""
        return all(torch.equal(_sums(layer), before) for layer, before in zip(self.layers, self._sums, strict=True))

    def product(self, x: Tensor) -> Tensor:
        found: Tensor = laid_out_product(x, self._weight, self._bias)
        return found


def _sums(layer: nn.Linear) -> Tensor:
    """A layer's answer to one input, which no change of its weights leaves as it is; as quick as reading them."""
    x = torch.linspace(0.5, 1.5, layer.in_features)
    return nn.functional.linear(x, layer.weight.detach(), None if layer.bias is None else layer.bias.detach())
