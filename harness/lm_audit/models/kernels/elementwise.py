"""Triton kernels of what a decoder does between its matrix products: RMS norms and rotations, in one launch each.

Roundings are those of the plain form in transformers, step by step, so that a kernel and the plain form differ by the
order of one sum alone.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE = 2048


@triton.jit  # type: ignore[untyped-decorator]
def _norm_kernel(  # type: ignore[no-untyped-def]
    x, weight, out, rows, width, eps, SHIFTED: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """``weight * x / rms(x)``; SHIFTED: ``(1 + weight) * x / rms(x)``, multiplied before it is rounded."""
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    inside = (r[:, None] < rows) & (c[None, :] < width)
    place = r[:, None] * width + c[None, :]
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 1) / width + eps)
    w = tl.load(weight + c, mask=c < width, other=0.0)
    normed = values * scale[:, None]
    if SHIFTED:
        found = normed * (1.0 + w.to(tl.float32))[None, :]
    else:
        found = normed.to(out.dtype.element_ty).to(tl.float32) * w.to(tl.float32)[None, :]
    tl.store(out + place, found.to(out.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _turn_kernel(  # type: ignore[no-untyped-def]
    query, key, query_out, key_out, cosine, sine, tokens, turn_batch,
    query_batch, query_head, query_row, key_batch, key_head, key_row,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Rotary positions of all heads of one token: halves turned against each other."""
    token, row = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    e = tl.arange(0, HALF)
    turn = row * turn_batch + token * 2 * HALF
    c_low, c_high = tl.load(cosine + turn + e).to(tl.float32), tl.load(cosine + turn + HALF + e).to(tl.float32)
    s_low, s_high = tl.load(sine + turn + e).to(tl.float32), tl.load(sine + turn + HALF + e).to(tl.float32)
    kind = query_out.dtype.element_ty
    h = tl.arange(0, BH)[:, None]
    place = row * query_batch + token * query_row + h * query_head + e[None, :]
    low = tl.load(query + place, mask=h < HEADS, other=0.0).to(tl.float32)
    high = tl.load(query + place + HALF, mask=h < HEADS, other=0.0).to(tl.float32)
    first = (low * c_low[None, :]).to(kind).to(tl.float32) + (-high * s_low[None, :]).to(kind).to(tl.float32)
    second = (high * c_high[None, :]).to(kind).to(tl.float32) + (low * s_high[None, :]).to(kind).to(tl.float32)
    tl.store(query_out + place, first.to(kind), mask=h < HEADS)
    tl.store(query_out + place + HALF, second.to(kind), mask=h < HEADS)
    g = tl.arange(0, BK)[:, None]
    place = row * key_batch + token * key_row + g * key_head + e[None, :]
    low = tl.load(key + place, mask=g < KEY_HEADS, other=0.0).to(tl.float32)
    high = tl.load(key + place + HALF, mask=g < KEY_HEADS, other=0.0).to(tl.float32)
    first = (low * c_low[None, :]).to(kind).to(tl.float32) + (-high * s_low[None, :]).to(kind).to(tl.float32)
    second = (high * c_high[None, :]).to(kind).to(tl.float32) + (low * s_high[None, :]).to(kind).to(tl.float32)
    tl.store(key_out + place, first.to(kind), mask=g < KEY_HEADS)
    tl.store(key_out + place + HALF, second.to(kind), mask=g < KEY_HEADS)


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, shifted: bool) -> Tensor:
    """``x`` (contiguous, ... x width) by its root mean square and times ``weight``, or ``1 + weight``."""
    out = torch.empty_like(x)
    width = x.shape[-1]
    block = triton.next_power_of_2(width)
    rows = max(1, _TILE // block)
    count = x.numel() // width
    _norm_kernel[(triton.cdiv(count, rows),)](
        x, weight, out, count, width, eps, SHIFTED=shifted, ROWS=rows, WIDTH=block, num_warps=8 if block > 2048 else 4
    )
    return out


def can_turn(query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor) -> bool:
    """Whether ``turn`` takes these: whole heads of an even power of two, one dtype, memory without gaps."""
    width = query.shape[-1]
    return (
        query.ndim == key.ndim == 4
        and cosine.ndim == sine.ndim == 3
        and width == key.shape[-1] == cosine.shape[-1] == sine.shape[-1]
        and width >= 4
        and width & (width - 1) == 0
        and query.stride(-1) == key.stride(-1) == 1
        and query.dtype == key.dtype == cosine.dtype == sine.dtype
        and cosine.is_contiguous()
        and sine.is_contiguous()
        and cosine.shape == sine.shape
        and cosine.shape[0] in (1, query.shape[0])
        and query.shape[2] == key.shape[2] == cosine.shape[1]
        and query.shape[1] * width <= 16384
    )


def turn(query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
    """Rotary positions of queries and keys [rows, heads, tokens, width]; cosine and sine [rows or 1, tokens, width]."""
    rows, heads, tokens, width = query.shape
    outs = (
        torch.empty_strided(query.shape, query.stride(), dtype=query.dtype, device=query.device),
        torch.empty_strided(key.shape, key.stride(), dtype=key.dtype, device=key.device),
    )
    _turn_kernel[tokens, rows](
        query, key, *outs, cosine, sine, tokens, cosine.stride(0) if cosine.shape[0] > 1 else 0,
        *query.stride()[:3], *key.stride()[:3],
        HEADS=heads, KEY_HEADS=key.shape[1], BH=triton.next_power_of_2(heads),
        BK=triton.next_power_of_2(key.shape[1]), HALF=width // 2, num_warps=4,
        enable_fp_fusion=False,  # each product is rounded before the sum, as in the plain form
    )  # fmt: skip
    return outs
