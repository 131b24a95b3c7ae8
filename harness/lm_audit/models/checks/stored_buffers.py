"""Whether buffers that a checkpoint holds and transformers passes over are those that its config gives.

Older versions saved the frequencies of the rotation and the mask beside the weights, and read them back. Where they are
others than the config's, the model was another one when it was saved.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import rope_kinds, text_config
from lm_audit.models.files.json_file import listed
from lm_audit.models.files.safetensors_file import read_entries

if TYPE_CHECKING:
    from torch import Tensor

_FREQUENCIES = re.compile(r"(^|\.)rotary(_emb)?\.inv_freq$")
_MASK = re.compile(r"(^|\.)(attn|attention|self_attn)\.bias$")
_NEAR = 0.02  # some were kept in half precision


def tell_buffers(module: CausalModule, files: Iterable[Path], where: str) -> None:
    """Warn of stored frequencies and masks in ``files`` that are not those of ``module``, which they came with."""
    untyped: Any = module
    own, buffers = set(module.state_dict()), dict(untyped.named_buffers())
    turned, masked = [], []
    for name, value in _stored(files, own):
        if _FREQUENCIES.search(name):
            known = [
                *_frequencies(module, 2 * value.numel()),
                *(b for n, b in buffers.items() if n.endswith("inv_freq")),
            ]
            if not any(
                one.shape == value.shape and torch.allclose(one.float().cpu(), value, rtol=_NEAR, atol=1e-6)
                for one in known
            ):
                turned.append(name)
        elif not _is_mask(value, buffers.get(name)):
            masked.append(name)
    for names, what in ((turned, "frequencies of the rotation"), (masked, "a mask")):
        if names:
            warnings.warn(
                f"{where}: its weights hold {what} ({listed(names)}) that its config does not give; transformers goes"
                " by the config: is it the model's?",
                stacklevel=2,
            )


def _stored(files: Iterable[Path], own: set[str]) -> Iterator[tuple[str, Tensor]]:
    from safetensors import safe_open

    for path in files:
        names = [
            entry.name for entry in read_entries(path) if entry.name not in own and _is_told(entry.name, entry.shape)
        ]
        if names:
            with safe_open(path, framework="pt") as file:
                yield from ((name, file.get_tensor(name).float()) for name in names)


def _is_told(name: str, shape: tuple[int, ...]) -> bool:
    square = len(shape) > 1 and shape[-1] == shape[-2] > 1
    return bool(_FREQUENCIES.search(name)) or (square and bool(_MASK.search(name)))


def _frequencies(module: CausalModule, width: int) -> Iterator[Tensor]:
    """Those of each base that the config states, before any scaling: all that older versions saved."""
    text = text_config(module.config)
    bases = [kind.get("rope_theta") for kind in rope_kinds(text)] + [getattr(text, "rope_theta", None)]
    for base in {float(base) for base in bases if isinstance(base, int | float) and base > 0}:
        yield 1 / base ** (torch.arange(0, width, 2) / width)


def _is_mask(value: Tensor, buffer: Tensor | None) -> bool:
    """Whether a mask is the class's own or, where that keeps none, the one of reading from left to right."""
    seen = value.flatten(0, -3)[0] != 0
    wanted = torch.ones_like(seen).tril() if buffer is None or buffer.shape != value.shape else buffer.cpu().bool()
    return bool((seen == wanted.reshape(-1, *seen.shape)[0]).all())
