"""Runs the model's body over packs and hands back hidden states; knows the mask of a tree and the cache of a path."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.kernels import attending as kernel_attention
from lm_audit.models.kernels.attending import KernelUnfit, TreeAttention, attending, no_mask
from lm_audit.models.kernels.fused_parts import FusedParts
from lm_audit.models.loading.placement import embedding_device
from lm_audit.models.scoring.packs.layout import Layout


@dataclass(frozen=True, slots=True)
class Carry:
    """What a pack hands to the next: keys and values of every layer and hidden states of the shared path."""

    layers: list[tuple[torch.Tensor, torch.Tensor]]
    hidden: torch.Tensor

    def __len__(self) -> int:
        return len(self.hidden)


class Fault(Enum):
    """A way of reading a tree wrongly, made on purpose by the self-check."""

    POSITIONS = "positions count on over branches"
    MASK = "branches see each other"


class Body:
    """The model without its head. ``module`` is what the user gave; adapters around it are looked through."""

    def __init__(self, module: CausalModule):
        self.causal = _without_adapter_shell(module)
        self.model = _find_body(self.causal)
        self._fused = FusedParts.of(self.model)
        self.output_type: Any = None  # of the model's last answer
        self.fault: Fault | None = None
        # transformers renames the argument in 5.x.
        names = inspect.signature(self.model.forward).parameters
        self._cache_argument = "cache" if "cache" in names else "past_key_values"

    def run(
        self, layouts: Sequence[Layout], carry: Carry | None, *, positions: bool, by_kernel: bool = False
    ) -> tuple[list[torch.Tensor], Carry | None]:
        """Hidden states [past + nodes, width] of each pack, and what the last pack hands on.

        ``by_kernel``: attention to trees in a kernel that passes over what no node of a block sees; ``KernelUnfit``
        where the model's layers do not attend by it.
        """
        device = embedding_device(self.causal)
        ids, depth, end = _to_device(_padded(layouts, carry), device)
        past = len(carry) if carry is not None else 0
        ids, depth = ids[:, past:], depth[:, past:]
        if self.fault is Fault.POSITIONS:
            depth = torch.arange(past, past + ids.shape[1], device=device).expand_as(ids)
        elif self.fault is Fault.MASK:
            end = torch.full_like(end, ids.shape[1])
        arguments: dict[str, Any] = {"input_ids": ids, "use_cache": False}
        if positions:
            arguments["position_ids"] = depth
        how: Any = nullcontext()
        if not all(layout.is_path for layout in layouts):
            if by_kernel:
                arguments["attention_mask"] = no_mask(device, self.causal.dtype)
                how = self._by_kernel(past, end, ids.shape[1])
            else:
                arguments["attention_mask"] = _tree_mask(end, ids.shape[1], self.causal.dtype)
        cache = _cache(carry) if carry is not None or len(layouts[0].keep) else None
        if cache is not None:
            arguments.update({self._cache_argument: cache, "use_cache": True})
        with self._fused(), how:
            output = self.model(**arguments)
        self.output_type, hidden = type(output), output.last_hidden_state
        parts = [hidden[i, : len(layout.ids)] for i, layout in enumerate(layouts)]
        if carry is not None:
            parts = [torch.cat([carry.hidden, parts[0]])]
        return parts, _handed_on(cache, parts[0], layouts[0])

    @contextmanager
    def _by_kernel(self, past: int, end: torch.Tensor, nodes: int) -> Iterator[None]:
        by = kernel_attention.kernels(end.device)
        if by is None:
            raise KernelUnfit("no kernels on this device")
        own = torch.arange(past, past + nodes, device=end.device).expand(len(end), nodes)
        how = TreeAttention(by, own, end)
        with attending(how, by):
            yield
        if how.layers == 0:
            raise KernelUnfit("its layers do not attend through transformers' interface")


def _find_body(causal: Any) -> Any:
    """The part of a causal model that turns ids into hidden states: what its own forward calls for that.

    Most call ``base_model``; OPT calls the decoder inside of it, Llama 4 bears its body under another name.
    """
    base = causal.base_model
    parts = [part for child in causal.children() for part in (child, *child.children())]
    entered: list[Any] = []
    answered: list[Any] = []

    def note(part: object, _: object, output: object) -> None:
        if hasattr(output, "last_hidden_state"):
            answered.append(part)

    handles = [part.register_forward_pre_hook(lambda part, _: entered.append(part)) for part in parts]
    handles += [part.register_forward_hook(note) for part in parts]
    try:
        with torch.inference_mode():
            causal(input_ids=torch.ones(1, 2, dtype=torch.long, device=causal.device), use_cache=False)
    except Exception:  # what a model does with two tokens is said when it is asked
        return base
    finally:
        for handle in handles:
            handle.remove()
    return next((part for part in entered if any(part is other for other in answered)), base)


def _without_adapter_shell(module: CausalModule) -> Any:
    """The causal model inside a PEFT wrapper whose adapters sit in the layers themselves."""
    if hasattr(module, "peft_config") and hasattr(module, "get_base_model"):
        return module.get_base_model()
    return module


def _padded(layouts: Sequence[Layout], carry: Carry | None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """[3, packs, past + nodes] of ids, depths and ends; padding nodes see only themselves."""
    past, width = len(carry) if carry is not None else 0, max(len(layout.ids) for layout in layouts)
    out = np.zeros((3, len(layouts), past + width), dtype=np.int64)
    out[2] = np.arange(1 - past, width + 1)
    deepest = max((int(layout.depth.max()) for layout in layouts if len(layout.ids)), default=0)
    for i, layout in enumerate(layouts):
        n = len(layout.ids)
        out[0, i, past : past + n] = layout.ids
        out[1, i, past : past + n] = layout.depth
        out[2, i, : past + n] = layout.end
        if layout.is_path:  # no mask will be passed: padding follows the text and continues its positions
            # Beside a tree, which has more nodes than positions, it would count beyond the model's context.
            out[1, i, past + n :] = np.minimum(np.arange(n, width), deepest)
    return out


def _to_device(arrays: object, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tensor = torch.from_numpy(arrays)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    tensor = tensor.to(device, non_blocking=True)
    ids, depth, end = tensor
    return ids, depth, end


def _tree_mask(end: torch.Tensor, width: int, dtype: torch.dtype) -> torch.Tensor:
    """Additive mask [packs, 1, nodes, past + nodes]: a node sees its ancestors and itself."""
    node = torch.arange(width, device=end.device)[:, None]
    key = torch.arange(end.shape[1], device=end.device)[None, :] - (end.shape[1] - width)
    sees = (key <= node) & (node < end[:, None, None, :])
    mask = torch.zeros(sees.shape, dtype=dtype, device=end.device)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)


def _cache(carry: Carry | None) -> Any:
    from transformers import DynamicCache

    return DynamicCache() if carry is None else DynamicCache(carry.layers)


def _handed_on(cache: Any, hidden: torch.Tensor, layout: Layout) -> Carry | None:
    if not len(layout.keep):
        return None
    keep = torch.from_numpy(layout.keep)
    layers = [tuple(part.index_select(2, keep.to(part.device)) for part in (x.keys, x.values)) for x in cache.layers]
    return Carry(layers, hidden[keep.to(hidden.device)])
