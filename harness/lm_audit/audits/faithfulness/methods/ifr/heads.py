"""Attention of one layer recomputed from its input: keys, values, and probabilities of chosen rows, head by head.

Nothing here holds more than a chunk of attention rows; ``layer_heads`` follows the model's own operations (norm,
biases, q/k norms, rotary positions, window), and the trace checks that the result is the model's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lm_audit.audits.faithfulness.methods.decoder import Decoder, Layer, norm_epsilon

_PIECE = 512
"""Columns of one piece of a product over a whole text."""

ROW_BUDGET = 32 * 2**20
"""Attention probabilities (heads x rows x columns) held at once."""


def inverse_rms(x: Tensor, epsilon: float) -> Tensor:
    """``1 / sqrt(mean(x^2) + epsilon)`` over the last axis, in float32, kept as a column."""
    return torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)


def long_product(left: Tensor, right: Tensor, pieces: int) -> Tensor:
    """``left @ right`` (... x M x T, ... x T x N) as a sum over pieces of T: few rows and columns alone leave most of
    a GPU idle.
    """
    if pieces < 2:
        return torch.matmul(left, right)
    length = left.shape[-1] // pieces
    whole = length * pieces
    parts = torch.unflatten(left[..., :whole], -1, (pieces, length)).transpose(-3, -2)
    total = torch.matmul(parts, torch.unflatten(right[..., :whole, :], -2, (pieces, length))).sum(-3)
    if whole < left.shape[-1]:
        total += torch.matmul(left[..., whole:], right[..., whole:, :])
    return total


def launch_kernels(tensor: Tensor) -> Any:
    """The kernels of one launch for norms, where no gradient is asked for and Triton runs."""
    if not tensor.is_cuda or torch.is_grad_enabled():
        return None
    try:
        from lm_audit.models.kernels import elementwise
    except ImportError:
        return None
    return elementwise


def rms_norm(norm: Any, x: Tensor, epsilon: float | None = None) -> Tensor:
    """The norm as the model computes it, or with another epsilon."""
    kernels = launch_kernels(x)
    if kernels is not None and x.dtype == norm.weight.dtype and x.is_contiguous():
        fused: Tensor = kernels.rms_norm(
            x, norm.weight, norm_epsilon(norm) if epsilon is None else epsilon, shifted=False
        )
        return fused
    scale = inverse_rms(x, norm_epsilon(norm) if epsilon is None else epsilon)
    scaled: Tensor = norm.weight * (x.float() * scale).to(x.dtype)
    return scaled


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions applied to ``... x T x e``."""
    kernels = launch_kernels(x)
    if kernels is not None and x.ndim == 3:
        given = x[None], x[None, :1], cosine[None], sine[None]
        if kernels.can_turn(*given):
            turned: Tensor = kernels.turn(*given)[0][0]
            return turned
    return x * cosine + _half_turn(x) * sine


def rotated_back(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """The transpose of :func:`rotated`, for gradients."""
    return x * cosine - _half_turn(x * sine)


def _half_turn(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def gpu_kernels(tensor: Tensor) -> Any:
    """The Triton kernels where they run for this tensor, else ``None``."""
    if not tensor.is_cuda:
        return None
    try:
        from lm_audit.audits.faithfulness.methods.ifr import kernels
    except ImportError:
        return None
    return kernels if kernels.supported(tensor) else None


@dataclass(frozen=True)
class Heads:
    """Keys and values of one layer (K x T x e, positions rotated in already); queries are made for the rows asked for.

    ``values`` are the model's, with bias; ``messages`` are the values without bias, from the norm at ``eps``: what IFR
    follows from source to sink. ``row_sums`` are the softmax's sums by (first row, rows), kept for other
    hops.
    """

    layer: Layer
    decoder: Decoder
    normed: Tensor
    rotary: tuple[Tensor, Tensor]
    keys: Tensor
    values: Tensor
    messages: Tensor
    row_sums: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """T."""
        return self.keys.shape[-2]

    def queries(self, rows: Tensor) -> Tensor:
        """Queries of the given positions, H x R x e."""
        attention: Any = self.layer.attention
        queries = _split(attention.q_proj(self.normed[rows]), self.decoder.head_width)
        if getattr(attention, "q_norm", None) is not None:
            queries = rms_norm(attention.q_norm, queries)
        return rotated(queries, self.rotary[0][rows], self.rotary[1][rows])

    def probabilities(self, rows: Tensor) -> Tensor:
        """Attention of the given query positions, H x R x T, in float32."""
        groups = self.decoder.heads // self.decoder.kv_heads
        grouped = torch.unflatten(self.queries(rows), 0, (self.decoder.kv_heads, groups)).flatten(1, 2)
        scores = torch.matmul(grouped, self.keys.transpose(-1, -2)).float().mul_(self.decoder.scaling)
        scores = torch.unflatten(scores, 1, (groups, len(rows))).flatten(0, 1)
        return torch.softmax(scores.masked_fill_(~self.visible(rows), -torch.inf), -1)

    def visible(self, rows: Tensor) -> Tensor:
        """Which columns each row sees: causal, and inside the layer's window."""
        columns = torch.arange(self.length, device=rows.device)
        seen = columns[None] <= rows[:, None]
        if self.layer.window is not None:
            seen &= columns[None] > rows[:, None] - self.layer.window
        return seen

    def row_chunks(self, rows: Tensor) -> Iterator[Tensor]:
        """The rows in pieces whose probabilities fit the budget."""
        yield from torch.split(rows, self.chunk_size)

    @property
    def chunk_size(self) -> int:
        """Rows in a chunk."""
        return max(1, ROW_BUDGET // (self.decoder.heads * self.length))

    def mix(self, attention: Tensor) -> Tensor:
        """Attention output of rows H x R x T before the output's bias: values mixed and projected, R x d, float32.

        A bias of the values is contained: it is added once for each unit of attention that a row gives away.
        """
        groups = self.decoder.heads // self.decoder.kv_heads
        grouped = torch.unflatten(attention, 0, (self.decoder.kv_heads, groups)).flatten(1, 2)
        product = long_product(grouped, self.values.float(), 1 if not grouped.is_cuda else self.length // _PIECE)
        mixed = torch.unflatten(product, 1, (groups, attention.shape[1])).flatten(0, 1)
        return functional.linear(mixed.transpose(0, 1).flatten(1), self.layer.output_weight.float())

    @property
    def output_bias(self) -> Tensor:
        """The bias of the output projection (d), zeros where it has none."""
        attention: Any = self.layer.attention
        if attention.o_proj.bias is None:
            return torch.zeros(self.decoder.width, device=self.keys.device)
        bias: Tensor = attention.o_proj.bias.float()
        return bias

    def pooled(self, rows: Tensor, weights: Tensor, first: int) -> Tensor:
        """``sum over rows of weight * attention``, H x T, in chunks of rows: consecutive positions, from ``first``."""
        kernels = gpu_kernels(self.keys)
        if kernels is not None:
            pooled: Tensor
            pooled, self.row_sums[first, len(rows)] = kernels.pooled_attention(
                self.queries(rows),
                self.keys,
                first,
                weights,
                self.decoder.scaling,
                self.layer.window,
                self.row_sums.get((first, len(rows))),
            )
            return pooled
        total = torch.zeros(self.decoder.heads, self.length, device=self.keys.device)
        for chunk, share in zip(self.row_chunks(rows), torch.split(weights, self.chunk_size), strict=True):
            total += torch.einsum("hrt,r->ht", self.probabilities(chunk), share)
        return total


def layer_heads(
    decoder: Decoder, index: int, x: Tensor, rotary: tuple[Tensor, Tensor], eps: float | None = None
) -> Heads:
    """Heads of layer ``index`` from its input ``x`` (T x d), with the message norm at ``eps`` (``None``: the
    model's).
    """
    layer = decoder.layers[index]
    attention: Any = layer.attention
    normed = rms_norm(layer.input_norm, x)
    keys = _split(attention.k_proj(normed), decoder.head_width)
    values = _split(attention.v_proj(normed), decoder.head_width)
    if getattr(attention, "k_norm", None) is not None:
        keys = rms_norm(attention.k_norm, keys)
    if eps is None and attention.v_proj.bias is None:
        messages = values
    else:
        source = normed if eps is None else rms_norm(layer.input_norm, x, eps)
        messages = _split(functional.linear(source, attention.v_proj.weight), decoder.head_width)
    return Heads(layer, decoder, normed, rotary, rotated(keys, *rotary), values, messages)


def _split(projected: Tensor, width: int) -> Tensor:
    """T x (heads * e) as heads x T x e."""
    return torch.unflatten(projected, -1, (-1, width)).transpose(0, 1)
