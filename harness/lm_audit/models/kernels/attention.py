"""Triton kernels of attention that read each key and value once: no repeated heads, no mask in memory.

``attend_seen`` is for many queries, each of which sees some of the keys: blocks that no query of a block sees are
passed over. ``attend_rows`` is for one query a row over preallocated keys, of which each row has a length of its own.
Softmax and sums are in float32, as in flash attention (Dao 2022); long rows are cut and put together again by their
sums (flash decoding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = 1.4426950408889634
_PROGRAMS = 512
"""Programs that fill a card: short batches of long rows are cut into so many."""
_MOST_SPLITS = 64
_LEAST_COLUMNS = 256
"""Columns that a cut row's piece has at least."""


def query_block(width: int) -> int:
    """Queries of a block, by the width of a head."""
    return 128 if width <= 128 else 64


KEY_BLOCK = 64


@dataclass(frozen=True)
class Seen:
    """What queries see: query i of a row sees key j where ``j <= own[i]`` and ``ends[j] > i`` (``None``: always).

    ``own`` [rows, queries] and ``ends`` [rows, keys] int32. ``blocks`` [rows, query blocks, key blocks] int32 are the
    key blocks that a block of queries needs, ``counts`` how many of them do.
    """

    own: Tensor
    ends: Tensor | None
    blocks: Tensor
    counts: Tensor


def seen(own: Tensor, ends: Tensor | None, keys: int, width: int) -> Seen:
    """The blocks that queries need; waits for nothing."""
    own = own.to(torch.int32).contiguous()
    rows, queries = own.shape
    block = query_block(width)
    padded = torch.nn.functional.pad(own[:, None].float(), (0, -queries % block), mode="replicate")[:, 0]
    last = padded.view(rows, -1, block).amax(-1)
    starts = torch.arange(0, keys, KEY_BLOCK, device=own.device)
    needed = starts <= last[:, :, None]
    if ends is not None:
        ends = ends.to(torch.int32).contiguous()
        whole = torch.nn.functional.pad(ends, (0, -keys % KEY_BLOCK)).view(rows, -1, KEY_BLOCK).amax(-1)
        needed &= whole[:, None] > torch.arange(0, queries, block, device=own.device)[None, :, None]
    order = needed.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return Seen(own, ends, order.contiguous(), needed.sum(-1, dtype=torch.int32).contiguous())


@triton.jit  # type: ignore[untyped-decorator]
def _seen_kernel(  # type: ignore[no-untyped-def]
    query, key, value, out, own, ends, blocks, counts, queries, keys, groups, scale, block_row, key_blocks,
    query_batch, query_head, query_row, key_batch, key_head, key_row, value_batch, value_head, value_row,
    out_batch, out_row,
    E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ENDS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head and row over the key blocks that it needs."""
    block, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    m = block * BM + tl.arange(0, BM)
    e = tl.arange(0, E)
    inside = m < queries
    q = tl.load(
        query + row * query_batch + head * query_head + m[:, None].to(tl.int64) * query_row + e[None, :],
        mask=inside[:, None],
        other=0.0,
    )
    limit = tl.load(own + row * queries + m, mask=inside, other=0)
    top = tl.full([BM], -1.0e30, tl.float32)
    total = tl.zeros([BM], tl.float32)
    mixed = tl.zeros([BM, E], tl.float32)
    key_base = key + row * key_batch + (head // groups) * key_head
    value_base = value + row * value_batch + (head // groups) * value_head
    needed = tl.load(counts + row * block_row + block)
    list_base = blocks + (row * block_row + block) * key_blocks
    for place in range(0, needed):
        n = tl.load(list_base + place) * BN + tl.arange(0, BN)
        there = n < keys
        k = tl.load(key_base + n[None, :].to(tl.int64) * key_row + e[:, None], mask=there[None, :], other=0.0)
        scores = tl.dot(q, k, input_precision=PRECISION) * scale
        sees = (n[None, :] <= limit[:, None]) & there[None, :]
        if ENDS:
            end = tl.load(ends + row * keys + n, mask=there, other=0)
            sees = sees & (end[None, :] > m[:, None])
        scores = tl.where(sees, scores, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.where(sees, tl.exp2(scores - higher[:, None]), 0.0)
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(value_base + n[:, None].to(tl.int64) * value_row + e[None, :], mask=there[:, None], other=0.0)
        mixed = mixed * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        top = higher
    mixed = mixed / tl.where(total > 0.0, total, 1.0)[:, None]
    tl.store(
        out + row * out_batch + m[:, None].to(tl.int64) * out_row + head * E + e[None, :],
        mixed.to(out.dtype.element_ty),
        mask=inside[:, None],
    )


@triton.jit  # type: ignore[untyped-decorator]
def _rows_kernel(  # type: ignore[no-untyped-def]
    query, key, value, lengths, out, tops, sums, scale, window, heads,
    query_batch, query_head, key_batch, key_head, key_row, value_batch, value_head, value_row,
    GROUP: tl.constexpr, BG: tl.constexpr, E: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr,
    WINDOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The queries of one key head over one piece of its row; with one piece the result, else a part and its sums."""
    row, head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    length = (tl.load(lengths + row) + 1).to(tl.int32)
    first = 0
    if WINDOW:
        first = tl.maximum(0, length - window)
    piece = tl.cdiv(tl.cdiv(length - first, SPLITS), BN) * BN
    begin = first + split * piece
    end = tl.minimum(length, begin + piece)
    g = tl.arange(0, BG)
    e = tl.arange(0, E)
    q = tl.load(
        query + row * query_batch + (head * GROUP + g[:, None]) * query_head + e[None, :],
        mask=g[:, None] < GROUP,
        other=0.0,
    )
    top = tl.full([BG], -1.0e30, tl.float32)
    total = tl.zeros([BG], tl.float32)
    mixed = tl.zeros([BG, E], tl.float32)
    key_base = key + row * key_batch + head * key_head
    value_base = value + row * value_batch + head * value_head
    for start in range(begin, end, BN):
        n = start + tl.arange(0, BN)
        there = n < end
        k = tl.load(key_base + n[None, :].to(tl.int64) * key_row + e[:, None], mask=there[None, :], other=0.0)
        scores = tl.where(there[None, :], tl.dot(q, k, input_precision=PRECISION) * scale, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.where(there[None, :], tl.exp2(scores - higher[:, None]), 0.0)
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(value_base + n[:, None].to(tl.int64) * value_row + e[None, :], mask=there[:, None], other=0.0)
        mixed = mixed * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        top = higher
    at = row * heads + head * GROUP + g
    if SPLITS == 1:
        mixed = mixed / tl.where(total > 0.0, total, 1.0)[:, None]
        tl.store(out + at[:, None] * E + e[None, :], mixed.to(out.dtype.element_ty), mask=g[:, None] < GROUP)
    else:
        place = at * SPLITS + split
        tl.store(out + place[:, None] * E + e[None, :], mixed, mask=g[:, None] < GROUP)
        tl.store(tops + place, top, mask=g < GROUP)
        tl.store(sums + place, total, mask=g < GROUP)


@triton.jit  # type: ignore[untyped-decorator]
def _together_kernel(  # type: ignore[no-untyped-def]
    parts, tops, sums, out, E: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    """The pieces of one query put together."""
    at = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, SPLITS)
    e = tl.arange(0, E)
    top = tl.load(tops + at * SPLITS + s)
    share = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(tl.load(sums + at * SPLITS + s) * share, 0)
    part = tl.load(parts + (at * SPLITS + s[:, None]) * E + e[None, :])
    tl.store(out + at * E + e, (tl.sum(part * share[:, None], 0) / total).to(out.dtype.element_ty))


def supported(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether the kernels take these heads: widths alike, a power of two from 16 to 256, elements side by side."""
    width = query.shape[-1]
    return (
        16 <= width <= 256
        and width & (width - 1) == 0
        and key.shape[-1] == value.shape[-1] == width
        and query.shape[1] % key.shape[1] == 0
        and all(one.stride(-1) == 1 for one in (query, key, value))
    )


def _precision(dtype: torch.dtype) -> str:
    return "ieee" if dtype == torch.float32 else "tf32"


def attend_seen(query: Tensor, key: Tensor, value: Tensor, what: Seen, scale: float) -> Tensor:
    """Attention [rows, queries, heads, width] of queries [rows, heads, queries, width] over keys and values.

    ``key`` and ``value`` are [rows, key heads, keys, width]; ``scale`` is that of the scores.
    """
    rows, heads, queries, width = query.shape
    keys = key.shape[2]
    out = torch.empty(rows, queries, heads, width, dtype=query.dtype, device=query.device)
    single = query.dtype == torch.float32
    block = query_block(width)
    settings: dict[str, Any] = {
        "E": width, "BM": block, "BN": KEY_BLOCK, "ENDS": what.ends is not None,
        "PRECISION": _precision(query.dtype), "num_warps": 8 if width > 64 else 4,
        "num_stages": 2 if single or width > 128 else 3,
    }  # fmt: skip
    grid = (triton.cdiv(queries, block), heads, rows)
    _seen_kernel[grid](
        query, key, value, out, what.own, what.ends if what.ends is not None else what.own, what.blocks, what.counts,
        queries, keys, heads // key.shape[1], scale * LOG2_E, what.counts.shape[1], what.blocks.shape[2],
        *query.stride()[:3], *key.stride()[:3], *value.stride()[:3], out.stride(0), out.stride(1), **settings,
    )  # fmt: skip
    return out


def attend_rows(
    query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float, window: int | None = None
) -> Tensor:
    """Attention [rows, 1, heads, width] of one query a row, [rows, heads, 1, width].

    Row r sees the columns 0 to ``lengths[r]`` of ``key`` and ``value`` [rows, key heads, columns, width], the last
    ``window`` of them where that is given. Nothing depends on the lengths but what the device reads.
    """
    rows, heads, _, width = query.shape
    kv_heads, columns = key.shape[1], key.shape[2]
    group = heads // kv_heads
    splits = 1
    while splits < _MOST_SPLITS and rows * kv_heads * splits < _PROGRAMS and 2 * splits * _LEAST_COLUMNS <= columns:
        splits *= 2
    out = torch.empty(rows, 1, heads, width, dtype=query.dtype, device=query.device)
    parts, tops, sums = out, out, out
    if splits > 1:
        parts = torch.empty(rows, heads, splits, width, dtype=torch.float32, device=query.device)
        tops, sums = (torch.empty(rows, heads, splits, dtype=torch.float32, device=query.device) for _ in range(2))
    settings: dict[str, Any] = {
        "GROUP": group, "BG": max(16, triton.next_power_of_2(group)), "E": width, "BN": 64 if width <= 128 else 32,
        "SPLITS": splits, "WINDOW": window is not None, "PRECISION": _precision(query.dtype),
        "num_warps": 4, "num_stages": 2 if query.dtype == torch.float32 else 3,
    }  # fmt: skip
    _rows_kernel[(rows, kv_heads, splits)](
        query, key, value, lengths, parts, tops, sums, scale * LOG2_E, window or 0, heads,
        query.stride(0), query.stride(1), *key.stride()[:3], *value.stride()[:3], **settings,
    )  # fmt: skip
    if splits > 1:
        _together_kernel[(rows * heads,)](parts, tops, sums, out, E=width, SPLITS=splits, num_warps=4)
    return out
