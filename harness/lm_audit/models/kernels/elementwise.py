"""Triton kernels of what a decoder does between its matrix products: RMS norms, rotations, gates, and the writing of
new keys and values into slots, in one launch each.

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
    x, weight, out, rows, width, eps, inner, outer_step, inner_step,
    SHIFTED: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """``weight * x / rms(x)``; SHIFTED: ``(1 + weight) * x / rms(x)``, multiplied before it is rounded.

    Row r of ``x`` begins ``outer_step`` times r / ``inner`` and ``inner_step`` times the rest behind its first number.
    """
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    inside = (r[:, None] < rows) & (c[None, :] < width)
    place = r[:, None] * width + c[None, :]
    source = (r // inner) * outer_step + (r % inner) * inner_step
    values = tl.load(x + source[:, None] + c[None, :], mask=inside, other=0.0).to(tl.float32)
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


@triton.jit  # type: ignore[untyped-decorator]
def _gate_kernel(  # type: ignore[no-untyped-def]
    gate, up, out, width, gate_step, up_step, BLOCK: tl.constexpr
):  # fmt: skip
    """``silu(gate) * up``, rounded between the two."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < width
    kind = out.dtype.element_ty
    g = tl.load(gate + row * gate_step + c, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + row * up_step + c, mask=inside, other=0.0).to(tl.float32)
    opened = (g / (1.0 + tl.exp(-g))).to(kind).to(tl.float32)
    tl.store(out + row * width + c, (opened * u).to(kind), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _put_kernel(  # type: ignore[no-untyped-def]
    key, value, key_room, value_room, columns, key_row, key_head, value_row, value_head, room_row, room_head,
    HEADS: tl.constexpr, BH: tl.constexpr, E: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """One token's keys and values of all heads into the column of its slot."""
    row = tl.program_id(0).to(tl.int64)
    h, e = tl.arange(0, BH)[:, None], tl.arange(0, BE)[None, :]
    there = (h < HEADS) & (e < E)
    place = row * room_row + h * room_head + tl.load(columns + row) * E + e
    tl.store(key_room + place, tl.load(key + row * key_row + h * key_head + e, mask=there), mask=there)
    tl.store(value_room + place, tl.load(value + row * value_row + h * value_head + e, mask=there), mask=there)


def can_norm(x: Tensor) -> bool:
    """Whether ``rms_norm`` takes this: numbers of a row side by side, rows at even steps or at two kinds of steps."""
    return x.ndim > 0 and x.numel() > 0 and x.stride(-1) == 1 and len(_levels(x)) <= 2


def rms_norm(x: Tensor, weight: Tensor, eps: float, *, shifted: bool) -> Tensor:
    """``x`` (... x width) by its root mean square and times ``weight``, or ``1 + weight``; without gaps."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    width = x.shape[-1]
    block = triton.next_power_of_2(width)
    rows = max(1, _TILE // block)
    count = x.numel() // width
    (_, outer_step), (inner, inner_step) = [*[(1, 0)] * 2, *_levels(x)][-2:]
    _norm_kernel[(triton.cdiv(count, rows),)](
        x, weight, out, count, width, eps, inner, outer_step, inner_step,
        SHIFTED=shifted, ROWS=rows, WIDTH=block, num_warps=8 if block > 2048 else 4,
    )  # fmt: skip
    return out


def _levels(x: Tensor) -> list[tuple[int, int]]:
    """Number and step of the rows of ``x``, of each level where they do not stand at even steps; outer ones first."""
    levels: list[tuple[int, int]] = []
    for size, step in zip(x.shape[:-1], x.stride()[:-1], strict=True):
        if size == 1:
            continue
        if levels and levels[-1][1] == size * step:
            levels[-1] = (levels[-1][0] * size, step)
        else:
            levels.append((size, step))
    return levels


def can_gate(gate: Tensor, up: Tensor) -> bool:
    """Whether ``gated`` takes these: of one shape and dtype, numbers side by side, rows at even steps."""
    return (
        gate.shape == up.shape
        and gate.dtype == up.dtype
        and gate.numel() > 0
        and all(x.ndim > 0 and x.stride(-1) == 1 and len(_levels(x)) <= 1 for x in (gate, up))
    )


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """``silu(gate) * up`` (... x width), without gaps."""
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    width, block = gate.shape[-1], 1024
    steps = [step for x in (gate, up) for _, step in _levels(x) or [(1, 0)]]
    _gate_kernel[(gate.numel() // width, triton.cdiv(width, block))](
        gate, up, out, width, *steps, BLOCK=block, num_warps=4
    )
    return out


def can_put(key: Tensor, value: Tensor, key_room: Tensor, value_room: Tensor) -> bool:
    """Whether ``put`` takes these: one token a row, rooms alike, numbers side by side."""
    return (
        key.shape == value.shape
        and key.shape[2] == 1
        and key_room.shape == value_room.shape
        and key_room.is_contiguous()
        and value_room.is_contiguous()
        and key.stride(-1) == value.stride(-1) == 1
        and key.dtype == value.dtype == key_room.dtype == value_room.dtype
        and key.shape[1] * key.shape[3] <= 16384
    )


def put(key: Tensor, value: Tensor, key_room: Tensor, value_room: Tensor, columns: Tensor) -> None:
    """Keys and values [rows, heads, 1, width] into ``columns`` [rows] of the first slots of the rooms
    [slots, heads, columns, width]."""
    rows, heads, _, width = key.shape
    _put_kernel[(rows,)](
        key, value, key_room, value_room, columns, *key.stride()[:2], *value.stride()[:2], *key_room.stride()[:2],
        HEADS=heads, BH=triton.next_power_of_2(heads), E=width, BE=triton.next_power_of_2(width), num_warps=4,
    )  # fmt: skip


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
