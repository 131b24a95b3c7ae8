"""Backward pass of a decoder written out: ordinary gradients and AttnLRP relevance with the same code.

Every operation of a Llama-like block has a short transposed form, and AttnLRP (arXiv 2402.05602) only changes factors
in it. Writing it out needs no patched classes, no parameter gradients and no stored graph; activations are recomputed
layer by layer from the residual stream, and many cotangents travel through one recomputed layer together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lm_audit.audits.faithfulness.methods.decoder import Decoder, Layer, norm_epsilon
from lm_audit.audits.faithfulness.methods.ifr.heads import inverse_rms, rms_norm, rotated, rotated_back

ATTENTION_BUDGET = 24 * 2**20
"""Floats of attention cotangents held at once."""


@dataclass(frozen=True)
class Rules:
    """Factors of the backward pass; ``constant_scale`` treats 1/rms and the SiLU slope as constants.

    Relevance is a factor times its cotangent. A product of two factors that both carry relevance would pass its own on
    twice, once to each; AttnLRP gives each half. Products nest: values get half of attention x value; of the other
    half, which goes through the softmax (linearised, as its gradient is), query and key get half each, a quarter.
    ``product`` is the gate's: half to the gate, half to what it lets through. Where one factor is a scale that the
    input itself makes (1/rms, the slope of an activation), all goes to the input: the scale counts as a constant.
    """

    constant_scale: bool
    product: float
    query_key: float
    value: float


GRADIENT = Rules(constant_scale=False, product=1.0, query_key=1.0, value=1.0)
ATTN_LRP = Rules(constant_scale=True, product=0.5, query_key=0.25, value=0.5)


@torch.no_grad()
def input_cotangents(
    decoder: Decoder, states: Sequence[Tensor], cotangents: Tensor, rotary: tuple[Tensor, Tensor], rules: Rules
) -> Tensor:
    """Cotangents of the input embeddings (B x T x d) from those of the input of the final norm.

    ``states`` hold S x T x d tensors with S = 1 (one passage for all B cotangents) or S = B (one each).
    """
    for index in reversed(range(len(decoder.layers))):
        cotangents = _layer(decoder, decoder.layers[index], states[index], cotangents, rotary, rules)
    return cotangents


def scattered(decoder: Decoder, state: Tensor, positions: Tensor, inner: Tensor, rules: Rules) -> Tensor:
    """Cotangents of the normed state at ``positions`` carried through the final norm into a B x T x d tensor."""
    batch, width = positions.shape[0], state.shape[-1]
    index = positions[..., None].expand(-1, -1, width)
    inputs = state.expand(batch, -1, -1).gather(1, index)
    through = _norm(decoder.base.norm, inputs, inner, rules)
    result = torch.zeros(batch, state.shape[1], width, dtype=state.dtype, device=state.device)
    return result.scatter_add_(1, index, through.to(state.dtype))


def _norm(norm: Any, x: Tensor, cotangent: Tensor, rules: Rules) -> Tensor:
    scale = inverse_rms(x, norm_epsilon(norm))
    direct: Tensor = cotangent.float() * norm.weight.float() * scale
    if rules.constant_scale:
        return direct.to(cotangent.dtype)
    wide = x.float()
    return (direct - wide * scale.pow(2) * (direct * wide).mean(-1, keepdim=True)).to(cotangent.dtype)


def _layer(
    decoder: Decoder, layer: Layer, x: Tensor, cotangent: Tensor, rotary: tuple[Tensor, Tensor], rules: Rules
) -> Tensor:
    attention: Any = layer.attention
    queries, keys, values = _projections(decoder, layer, x, rotary)
    mixed = functional.scaled_dot_product_attention(
        queries.rot, keys.rot, values, attn_mask=_bias_mask(layer, x.shape[1], x), is_causal=layer.window is None,
        scale=decoder.scaling, enable_gqa=decoder.heads != decoder.kv_heads,
    )  # fmt: skip
    # Recomputed rather than kept: a passage's attention matrices of all layers would not fit where its states do.
    middle = x + attention.o_proj(mixed.transpose(1, 2).flatten(2))
    cotangent = cotangent + _norm(
        layer.post_norm, middle, _mlp(layer.mlp, rms_norm(layer.post_norm, middle), cotangent, rules), rules
    )
    inner = (cotangent @ attention.o_proj.weight).unflatten(-1, (decoder.heads, -1)).transpose(1, 2)  # B x H x T x e
    dq, dk, dv = _attention(decoder, layer, queries.rot, keys.rot, values, inner, rules)
    total = _project_back(attention.v_proj, dv)
    total += _project_back(attention.q_proj, queries.back(dq, rotary, rules))
    total += _project_back(attention.k_proj, keys.back(dk, rotary, rules))
    return cotangent + _norm(layer.input_norm, x, total, rules)


@dataclass(frozen=True)
class _Rotated:
    """Queries or keys after norm and rotation, and the way back to the projection's output."""

    rot: Tensor
    projected: Tensor
    norm: Any

    def back(self, cotangent: Tensor, rotary: tuple[Tensor, Tensor], rules: Rules) -> Tensor:
        turned = rotated_back(cotangent, *rotary)
        return turned if self.norm is None else _norm(self.norm, self.projected, turned, rules)


def _projections(
    decoder: Decoder, layer: Layer, x: Tensor, rotary: tuple[Tensor, Tensor]
) -> tuple[_Rotated, _Rotated, Tensor]:
    attention: Any = layer.attention
    normed = rms_norm(layer.input_norm, x)

    def split(projection: Any) -> Tensor:
        heads: Tensor = projection(normed).unflatten(-1, (-1, decoder.head_width)).transpose(1, 2)
        return heads  # S x heads x T x e

    def turned(projection: object, norm: object) -> _Rotated:
        projected = split(projection)
        return _Rotated(rotated(projected if norm is None else rms_norm(norm, projected), *rotary), projected, norm)

    queries = turned(attention.q_proj, getattr(attention, "q_norm", None))
    return queries, turned(attention.k_proj, getattr(attention, "k_norm", None)), split(attention.v_proj)


def _bias_mask(layer: Layer, length: int, like: Tensor) -> Tensor | None:
    return None if layer.window is None else causal_mask(length, layer.window, like.device)


def causal_mask(length: int, window: int | None, device: torch.device) -> Tensor:
    """T x T booleans: which columns each row sees."""
    positions = torch.arange(length, device=device)
    distance = positions[:, None] - positions[None]
    return (distance >= 0) if window is None else (distance >= 0) & (distance < window)


def _project_back(projection: Any, cotangent: Tensor) -> Tensor:
    """Cotangent B x heads x T x e of a projection's output as B x T x d."""
    back: Tensor = cotangent.transpose(1, 2).flatten(2) @ projection.weight
    return back


def _mlp(mlp: Any, normed: Tensor, cotangent: Tensor, rules: Rules) -> Tensor:
    gate, up = mlp.gate_proj(normed), mlp.up_proj(normed)
    activated = functional.silu(gate)
    inner = cotangent @ mlp.down_proj.weight
    if rules.product != 1.0:
        inner *= rules.product
    # As a constant, the activation is the line from the origin through its value; 1e-10 is for a gate of exactly 0.
    slope = activated / (gate + 1e-10) if rules.constant_scale else _silu_slope(gate)
    back: Tensor = (inner * (up * slope)) @ mlp.gate_proj.weight
    back += inner.mul_(activated) @ mlp.up_proj.weight
    return back


def _silu_slope(gate: Tensor) -> Tensor:
    sigmoid = gate.sigmoid()
    return sigmoid * (1 + gate * (1 - sigmoid))


def _attention(
    decoder: Decoder, layer: Layer, queries: Tensor, keys: Tensor, values: Tensor, inner: Tensor, rules: Rules
) -> tuple[Tensor, Tensor, Tensor]:
    """Cotangents of rotated queries (B x H x T x e), keys and values (B x K x T x e), one KV head at a time."""
    groups, length, batch = decoder.heads // decoder.kv_heads, queries.shape[2], inner.shape[0]
    mask = causal_mask(length, layer.window, queries.device)
    dq = torch.empty_like(inner)
    dk = torch.empty(batch, decoder.kv_heads, length, decoder.head_width, dtype=inner.dtype, device=inner.device)
    dv = torch.empty_like(dk)
    step = max(1, ATTENTION_BUDGET // (groups * length * length))
    for kv in range(decoder.kv_heads):
        own = slice(kv * groups, (kv + 1) * groups)
        scores = (queries[:, own] * decoder.scaling) @ keys[:, kv, None].transpose(-1, -2)
        attention = scores.float().masked_fill_(~mask, -torch.inf).softmax(-1).to(inner.dtype)  # S x g x T x T
        for start in range(0, batch, step):
            part = slice(start, start + step)
            shared = attention if attention.shape[0] == 1 else attention[part]
            key, value, query = (
                t if t.shape[0] == 1 else t[part] for t in (keys[:, kv, None], values[:, kv, None], queries[:, own])
            )
            out = inner[part, own]
            dv[part, kv] = (shared.transpose(-1, -2) @ out).sum(1) * rules.value
            slope = out @ value.transpose(-1, -2)
            # Softmax backwards: sum_j alpha_j slope_j equals the product of output and its cotangent.
            slope -= ((shared @ value) * out).sum(-1, keepdim=True)
            slope *= shared * (decoder.scaling * rules.query_key)
            dq[part, own] = slope @ key
            dk[part, kv] = (slope.transpose(-1, -2) @ query).sum(1)
    return dq, dk, dv
