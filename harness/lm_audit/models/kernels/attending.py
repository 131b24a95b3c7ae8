"""Attention of a model's own layers by other means for the length of a pass, through transformers' attention interface.

A model whose layers call ``sdpa`` by that interface calls what is put in its place; whether it did, and whether it gave
what its own attention gives, is for the caller to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from lm_audit.models.kernels.grouped_rows import GroupedRows

Rule = Callable[[Any], int | None]
"""The window of a layer (columns, its own included), ``None`` where it sees all before it."""


class KernelUnfit(Exception):
    """A layer asks for attention that the kernels do not compute."""


class RowKernels(Protocol):
    """What this module needs for a decoding step: ``kernels.attention``, or ``GroupedRows`` on a CPU."""

    def supported(self, query: Tensor, key: Tensor, value: Tensor) -> bool: ...

    def attend_rows(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float, window: int | None = None
    ) -> Tensor: ...


class Kernels(RowKernels, Protocol):
    """What this module needs of ``kernels.attention``."""

    def seen(self, own: Tensor, ends: Tensor | None, keys: int, width: int) -> Any: ...

    def attend_seen(self, query: Tensor, key: Tensor, value: Tensor, what: Any, scale: float) -> Tensor: ...


def kernels(device: torch.device) -> Kernels | None:
    """The Triton kernels where there is a GPU and Triton."""
    if device.type != "cuda":
        return None
    try:
        from lm_audit.models.kernels import attention
    except ImportError:
        return None
    found: Any = attention
    return cast(Kernels, found)


def row_kernels(device: torch.device) -> RowKernels | None:
    """What attends in a decoding step on this device by each row's own length."""
    return kernels(device) or (GroupedRows() if device.type == "cpu" else None)


class TreeAttention:
    """Nodes of packs, each of which sees its ancestors: ``own`` [packs, nodes], ``ends`` [packs, past + nodes]."""

    def __init__(self, by: Kernels, own: Tensor, ends: Tensor):
        self._by, self._own, self._ends = by, own, ends
        self._seen: dict[int, Any] = {}
        self.layers = 0

    def __call__(self, layer: nn.Module, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        width = query.shape[-1]
        if width not in self._seen:
            self._seen[width] = self._by.seen(self._own, self._ends, key.shape[2], width)
        return self._by.attend_seen(query, key, value, self._seen[width], scale)


class RowAttention:
    """One token a row over slots that hold ``lengths`` tokens before it; ``window`` says what a layer sees."""

    def __init__(self, by: RowKernels, lengths: Tensor, window: Rule):
        self._by, self._lengths, self._window = by, lengths, window
        self.layers = 0

    def __call__(self, layer: nn.Module, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        return self._by.attend_rows(query, key, value, self._lengths, scale, self._window(layer))


_UNKNOWN = ("softcap", "s_aux", "position_bias", "head_mask", "relative_position_bias")


@contextmanager
def attending(how: TreeAttention | RowAttention, by: RowKernels) -> Iterator[None]:
    """Layers attend as ``how`` says, and are counted in ``how.layers``, for as long as the context lasts.

    A pass gets ``no_mask`` in place of a mask.
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        **more: object,
    ) -> tuple[Tensor, None]:
        asked = [name for name in _UNKNOWN if more.get(name) is not None]
        if asked or not by.supported(query, key, value):
            raise KernelUnfit(f"attention with {', '.join(asked) or 'heads of this shape'} is not in the kernels")
        how.layers += 1
        return how(module, query, key, value, query.shape[-1] ** -0.5 if scaling is None else scaling), None

    before = ALL_ATTENTION_FUNCTIONS["sdpa"]
    ALL_ATTENTION_FUNCTIONS["sdpa"] = attend
    try:
        yield
    finally:
        ALL_ATTENTION_FUNCTIONS.pop("sdpa")
        if ALL_ATTENTION_FUNCTIONS["sdpa"] is not before:  # someone else's, put there as this one was
            ALL_ATTENTION_FUNCTIONS["sdpa"] = before


def no_mask(device: torch.device, dtype: torch.dtype) -> Tensor:
    """What a model takes for a mask that is ready made, and nobody reads."""
    return torch.zeros(1, 1, 1, 1, device=device, dtype=dtype)
