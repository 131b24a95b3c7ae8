"""Parts of transformers, accelerate and torch that they do not promise to keep: every use of them goes through here.

Seen to work with transformers 5.24, accelerate 1.15 and torch 2.13 to 2.15. ``make test-latest`` tells whether newer
ones still have them; what is absent then is an error here, in one place, and not a wrong number elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from lm_audit.models.causal_module import CausalModule

if TYPE_CHECKING:
    from torch import Tensor

    from lm_audit.models.files.gguf.header import GgufHeader


def is_stateful(module: CausalModule) -> bool:
    """Whether the layers keep a state that cannot be cut back to an earlier token (Mamba, RWKV and their kin)."""
    return bool(getattr(module, "_is_stateful", False))


def tied_names(module: CausalModule) -> frozenset[str]:
    """The names in ``state_dict`` that share their tensor with another name."""
    return frozenset(getattr(module, "all_tied_weights_keys", None) or ())


def untie(module: Any) -> None:
    """Say that no weights of ``module`` are shared any more; its configuration is the caller's."""
    module.all_tied_weights_keys = {}


def attention_of(module: CausalModule) -> str | None:
    """The name of the attention implementation that the module runs with ("sdpa", "eager")."""
    return getattr(module.config, "_attn_implementation", None)


ATTENTION_SETTINGS = ("_attn_implementation", "_attn_implementation_internal")
"""Where a configuration keeps the name of the attention implementation: how it is computed, not what the model is."""


def key_layers(cache: object, *, windows: bool) -> list[Any]:
    """The layers of a cache that holds keys and values alone, each token's in its place; empty for any other.

    ``windows`` admits layers that keep those of a sliding window. A subclass may keep more than it shows, so types must
    be equal.
    """
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    layers = list(getattr(cache, "layers", None) or ())
    known = (DynamicLayer, DynamicSlidingWindowLayer) if windows else (DynamicLayer,)
    return layers if type(cache) is DynamicCache and all(type(layer) in known for layer in layers) else []


def has_hooks(part: Any) -> bool:
    """Whether somebody is told when the part is called."""
    return bool(part._forward_hooks or part._forward_pre_hooks)


def execution_device(part: object) -> Any:
    """Where accelerate computes a part whose weights it fetches when they are needed; ``None`` where it does not."""
    return getattr(getattr(part, "_hf_hook", None), "execution_device", None)


def unread_rotations(text: Any) -> list[str]:
    """Kinds of layers for which a language model's configuration has rotary settings, where it reads none of those."""
    rope = getattr(text, "rope_parameters", None)
    asked = getattr(text, "nested_rope_parameter_keys", None)
    if not isinstance(rope, dict) or asked is None:
        return []
    return [] if asked(rope) else [key for key, value in rope.items() if isinstance(value, dict)]


def sharing_copy(module: Any) -> Any:
    """A module of the same parts: replacing one in the copy leaves the original as it is, changing one changes both."""
    clone = copy.copy(module)
    # A shallow copy shares the dictionary of parts; without its own one, a part replaced here would be replaced there.
    clone._modules = dict(module._modules)
    return clone


@contextmanager
def gguf_names_once() -> Iterator[None]:
    """Within it, gguf makes its table of names once for an architecture and a number of layers.

    transformers asks for it anew for every part of a module: a thousand times for a model of forty layers, which takes
    longer than all else that is done with a small file.
    """
    import gguf

    made = gguf.get_tensor_name_map
    gguf.get_tensor_name_map = cache(made)
    try:
        yield
    finally:
        gguf.get_tensor_name_map = made


def gguf_tensors_without_place(module: CausalModule, header: GgufHeader, kept: frozenset[str]) -> list[str]:
    """The tensors of a GGUF file that transformers' conversion drops, except ``kept``; sorted.

    Architectures that it converts by rules of names give none here: what those leave is in the loading report.
    """
    from transformers.integrations.gguf.utils import is_gguf_arch_supported
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    if is_gguf_arch_supported(header.architecture):
        return []
    processors: Mapping[str, Any] = TENSOR_PROCESSORS
    processor = processors.get(header.architecture, TensorProcessor)(config=module.config.to_dict())
    placed = set(get_gguf_hf_weights_map(module, processor)) | kept
    # Weights of experts, which are one parameter of a part without a name of its own, are placed without an ending.
    return sorted(name for name in header.tensors if not {name, name.removesuffix(".weight")} & placed)


def gguf_architectures() -> frozenset[str]:
    """The GGUF architectures that this transformers converts, as it spells them; it loads torch."""
    from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    return frozenset({*GGUF_ARCHS, *GGUF_SUPPORTED_ARCHITECTURES})


def laid_out(weight: Tensor, rows: int) -> Any:
    """A float32 weight [out, in] on a CPU as oneDNN multiplies by it fastest, for inputs of about so many rows."""
    import torch

    return torch.ops.mkldnn._reorder_linear_weight(weight, rows)


def laid_out_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """``x`` [..., in] times a weight that was laid out, plus a bias [out] or ``None``: [..., out]."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def drops_values(part: object) -> bool:
    """Whether a part of a module is a dropout layer of torch, of any number of dimensions, that drops something."""
    from torch.nn.modules import dropout

    return isinstance(part, dropout._DropoutNd) and part.p > 0
