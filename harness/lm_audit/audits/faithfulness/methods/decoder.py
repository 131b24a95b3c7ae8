"""Decoder: the parts of a Llama-like transformer that attribution reads, or an error that names what is missing.

Covered: pre-norm RMSNorm blocks with separate q/k/v/o projections (grouped-query attention, biases, q/k norms on the
head width, sliding windows), rotary positions over the whole head, a gated SiLU MLP, tied or untied heads: Llama,
Qwen2, Qwen3, Mistral and models built like them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule, DecoderModule

COVERED = "Llama, Qwen2, Qwen3, Mistral and models of the same build are covered"
_LAYER_PARTS = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


@dataclass(frozen=True)
class Layer:
    """One decoder block; ``window`` is the number of positions a query sees, ``None`` for all."""

    input_norm: nn.Module
    attention: nn.Module
    post_norm: nn.Module
    mlp: nn.Module
    window: int | None

    @property
    def output_weight(self) -> Tensor:
        """``W_O`` (d x H*e)."""
        weight: Tensor = self.attention.o_proj.weight  # type: ignore[union-attr,assignment]
        return weight


@dataclass(frozen=True)
class Decoder:
    """A whole model: blocks, embedding, final norm, head, and the widths (H query heads, K KV heads of width e)."""

    module: DecoderModule
    base: Any
    layers: tuple[Layer, ...]
    heads: int
    kv_heads: int
    head_width: int
    width: int
    scaling: float

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        dtype: torch.dtype = self.layers[0].output_weight.dtype
        return dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.layers[0].output_weight.device

    def rotary(self, length: int) -> tuple[Tensor, Tensor]:
        """Cosine and sine of positions 0..length-1, each length x e, in the model's dtype as its layers get them."""
        positions = torch.arange(length, device=self.device)[None]
        like = torch.empty(1, 1, self.width, dtype=self.dtype, device=self.device)
        cosine, sine = self.base.rotary_emb(like, positions)
        return cosine[0], sine[0]


def norm_epsilon(norm: nn.Module) -> float:
    """The epsilon an RMSNorm really uses: ``variance_epsilon`` in transformers, ``eps`` elsewhere."""
    for name in ("variance_epsilon", "eps"):
        value = getattr(norm, name, None)
        if isinstance(value, float):
            return value
    raise ModelError(
        f"{type(norm).__name__} has neither variance_epsilon nor eps; an RMSNorm has one of them. {COVERED}"
    )


def describe_decoder(module: CausalModule) -> Decoder:
    """The decoder inside a transformers causal LM; ``ModelError`` names the part or property that is not covered."""
    kind = type(module).__name__
    base = getattr(module, "model", None)
    for name in ("layers", "embed_tokens", "norm", "rotary_emb"):
        if getattr(base, name, None) is None:
            raise ModelError(f"{kind} has no model.{name}, which attribution reads. {COVERED}")
    config = module.config
    _reject_unsupported(kind, config)
    layers = tuple(_describe_layer(kind, layer, config, index) for index, layer in enumerate(base.layers))  # type: ignore[union-attr]
    attention: Any = layers[0].attention
    head_width = int(attention.head_dim)
    return Decoder(
        module=cast("DecoderModule", module),
        base=base,
        layers=layers,
        heads=attention.q_proj.weight.shape[0] // head_width,
        kv_heads=attention.k_proj.weight.shape[0] // head_width,
        head_width=head_width,
        width=attention.q_proj.weight.shape[1],
        scaling=float(getattr(attention, "scaling", head_width**-0.5)),
    )


def _reject_unsupported(kind: str, config: object) -> None:
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if getattr(config, name, None):
            raise ModelError(
                f"{kind} caps its logits ({name}={getattr(config, name)}); soft caps are not covered. {COVERED}"
            )
    activation = getattr(config, "hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise ModelError(f"{kind} uses the activation {activation!r}; only SiLU gates are covered. {COVERED}")
    partial = getattr(config, "partial_rotary_factor", None)
    if partial not in (None, 1.0):
        raise ModelError(f"{kind} rotates only {partial} of each head; rotary positions must cover the head. {COVERED}")


def _describe_layer(kind: str, layer: Any, config: object, index: int) -> Layer:
    for path in _LAYER_PARTS:
        part: Any = layer
        for name in path.split("."):
            part = getattr(part, name, None)
        if part is None:
            raise ModelError(f"layer {index} of {kind} has no {path}, which attribution reads. {COVERED}")
        if path.endswith("_proj") and not (isinstance(part, nn.Linear) and part.weight.is_floating_point()):
            raise ModelError(
                f"{path} in layer {index} of {kind} is a {type(part).__name__}; a plain floating-point linear layer is "
                "needed (merge adapters, load without quantisation)"
            )
    for name in ("pre_feedforward_layernorm", "post_feedforward_layernorm"):
        if getattr(layer, name, None) is not None:
            raise ModelError(f"layer {index} of {kind} has a {name}: norms after a block are not covered. {COVERED}")
    return Layer(
        layer.input_layernorm, layer.self_attn, layer.post_attention_layernorm, layer.mlp, _window(layer, config, index)
    )


def _window(layer: object, config: object, index: int) -> int | None:
    window = getattr(config, "sliding_window", None)
    if window is None or getattr(config, "use_sliding_window", True) is False:
        return None
    kinds = getattr(config, "layer_types", None)
    sliding = kinds is None or kinds[index] == "sliding_attention"
    return int(window) if sliding else None
