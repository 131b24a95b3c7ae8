"""The Triton programs of span IFR on a GPU; :mod:`lm_audit.audits.faithfulness.methods.ifr.kernels` launches them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def row_sums(  # type: ignore[no-untyped-def]
    queries, keys, sums, rows, length, first, groups, scale, window,
    query_head, query_row, key_head, key_row,
    E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WINDOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Base-2 log-sum-exp of each query row over the columns it sees."""
    head = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    e = tl.arange(0, E)
    position = first + m
    q = tl.load(queries + head * query_head + m[:, None] * query_row + e[None, :], mask=m[:, None] < rows, other=0.0)
    place = keys + (head // groups) * key_head + e[:, None]
    top = tl.full([BM], -1.0e30, tl.float32)
    total = tl.zeros([BM], tl.float32)
    begin = 0
    if WINDOW:
        begin = tl.maximum(0, first + tl.program_id(0) * BM - window + 1) // BN * BN
    end = tl.minimum(length, first + tl.program_id(0) * BM + BM)
    # Up to here every row of the block sees every column: no mask is asked for. Within a window none is so.
    whole = begin
    if not WINDOW:
        whole = tl.minimum(length, first + tl.program_id(0) * BM + 1) // BN * BN
    for start in range(begin, whole, BN):
        n = start + tl.arange(0, BN)
        scores = tl.dot(q, tl.load(place + n[None, :] * key_row), input_precision=PRECISION)
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        total = total * tl.exp2(top - higher) + tl.sum(tl.exp2(scores * scale - higher[:, None]), 1)
        top = higher
    for start in range(whole, end, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(place + n[None, :] * key_row, mask=n[None, :] < length, other=0.0)
        scores = tl.dot(q, k, input_precision=PRECISION) * scale
        seen = n[None, :] <= position[:, None]
        if WINDOW:
            seen = seen & (n[None, :] > position[:, None] - window)
        scores = tl.where(seen, scores, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        total = total * tl.exp2(top - higher) + tl.sum(tl.where(seen, tl.exp2(scores - higher[:, None]), 0.0), 1)
        top = higher
    tl.store(sums + head * rows + m, top + tl.log2(total), mask=m < rows)


@triton.jit  # type: ignore[untyped-decorator]
def column_sums(  # type: ignore[no-untyped-def]
    queries, keys, sums, weights, pooled, rows, length, first, groups, scale, window,
    query_head, query_row, key_head, key_row,
    E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WINDOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Weighted sum over query rows of the probability that each column receives.

    Sums over rows are taken at the end: a sum in every step would be one across threads.
    """
    head = tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    e = tl.arange(0, E)
    k = tl.load(
        keys + (head // groups) * key_head + n[None, :] * key_row + e[:, None], mask=n[None, :] < length, other=0.0
    )
    place = queries + head * query_head + e[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    begin = tl.maximum(0, tl.program_id(0) * BN - first) // BM * BM
    # From here to the last whole block every row sees every column: no mask is asked for. Within a window none is so.
    free, stop = rows, rows
    if not WINDOW:
        free = tl.minimum(rows, (tl.maximum(0, tl.program_id(0) * BN + BN - 1 - first) + BM - 1) // BM * BM)
        stop = tl.maximum(free, rows // BM * BM)
    for start in range(begin, free, BM):
        total = _masked_rows(
            total, place, k, sums, weights, head, start, n, rows, first, scale, window, query_row, BM, WINDOW, PRECISION
        )
    for start in range(free, stop, BM):
        m = start + tl.arange(0, BM)
        scores = tl.dot(tl.load(place + m[:, None] * query_row), k, input_precision=PRECISION)
        row_sum, weight = tl.load(sums + head * rows + m), tl.load(weights + m)
        total += tl.exp2(scores * scale - row_sum[:, None]) * weight[:, None]
    for start in range(stop, rows, BM):
        total = _masked_rows(
            total, place, k, sums, weights, head, start, n, rows, first, scale, window, query_row, BM, WINDOW, PRECISION
        )
    tl.store(pooled + head * length + n, tl.sum(total, 0), mask=n < length)


@triton.jit  # type: ignore[untyped-decorator]
def _masked_rows(  # type: ignore[no-untyped-def]
    total, place, k, sums, weights, head, start, n, rows, first, scale, window, query_row,
    BM: tl.constexpr, WINDOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``total`` and the weighted probabilities of a block of rows of which some do not see all columns."""
    m = start + tl.arange(0, BM)
    inside = m < rows
    q = tl.load(place + m[:, None] * query_row, mask=inside[:, None], other=0.0)
    scores = tl.dot(q, k, input_precision=PRECISION)
    position = first + m
    seen = (n[None, :] <= position[:, None]) & inside[:, None]
    if WINDOW:
        seen = seen & (n[None, :] > position[:, None] - window)
    row_sum = tl.load(sums + head * rows + m, mask=inside, other=0.0)
    weight = tl.load(weights + m, mask=inside, other=0.0)
    return total + tl.where(seen, tl.exp2(scores * scale - row_sum[:, None]), 0.0) * weight[:, None]


@triton.jit  # type: ignore[untyped-decorator]
def proximity(  # type: ignore[no-untyped-def]
    values, output, pooled, whole, result, stop, length, groups, width,
    value_head, value_row, output_row,
    E: tl.constexpr, BJ: tl.constexpr, BD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``max(0, |Y| - |p F - Y|)`` of the messages of one head and a block of sources."""
    head = tl.program_id(1)
    j = tl.program_id(0) * BJ + tl.arange(0, BJ)
    e = tl.arange(0, E)
    v = tl.load(
        values + (head // groups) * value_head + j[:, None] * value_row + e[None, :], mask=j[:, None] < stop, other=0.0
    )
    weight = tl.load(pooled + head * length + j, mask=j < stop, other=0.0)
    total = tl.zeros([BJ], tl.float32)
    for start in range(0, width, BD):
        d = start + tl.arange(0, BD)
        w = tl.load(output + d[None, :] * output_row + head * E + e[:, None], mask=d[None, :] < width, other=0.0)
        message = tl.dot(v, w, input_precision=PRECISION) * weight[:, None]
        target = tl.load(whole + d, mask=d < width, other=0.0)
        total += tl.sum(tl.abs(target)[None, :] - tl.abs(message - target[None, :]), 1)
    tl.store(result + head * stop + j, tl.maximum(total, 0.0), mask=j < stop)


@triton.jit
def _far(message, weights, wholes, place, d, whole, there, width, sums):  # type: ignore[no-untyped-def]
    """``sums`` and the distances of messages, weighted for one sink, to its vector."""
    weight = tl.load(weights + place, mask=there, other=0.0)
    target = tl.load(wholes + whole * width + d, mask=d < width, other=0.0)
    return sums + tl.abs(message * weight[:, None] - target[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def sink_proximity(  # type: ignore[no-untyped-def]
    values, output, attention, wholes, sizes, result, sinks, length, first, groups, width,
    value_head, value_row, output_row,
    E: tl.constexpr, BJ: tl.constexpr, BD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same for every sink's own attention and vector: eight sinks, a block of sources and one head.

    Sums over the width are taken at the end: a sum in every step would be one across threads.
    """
    head = tl.program_id(1)
    i = tl.program_id(2) * 8
    j = tl.program_id(0) * BJ + tl.arange(0, BJ)
    e = tl.arange(0, E)
    inside = j < length
    # A block that reaches beyond the last sink does the last one again.
    last = sinks - 1
    base = head * sinks * length
    i0 = tl.minimum(i + 0, last)
    p0 = base + i0 * length + j
    s0 = tl.zeros([BJ, BD], tl.float32)
    i1 = tl.minimum(i + 1, last)
    p1 = base + i1 * length + j
    s1 = tl.zeros([BJ, BD], tl.float32)
    i2 = tl.minimum(i + 2, last)
    p2 = base + i2 * length + j
    s2 = tl.zeros([BJ, BD], tl.float32)
    i3 = tl.minimum(i + 3, last)
    p3 = base + i3 * length + j
    s3 = tl.zeros([BJ, BD], tl.float32)
    i4 = tl.minimum(i + 4, last)
    p4 = base + i4 * length + j
    s4 = tl.zeros([BJ, BD], tl.float32)
    i5 = tl.minimum(i + 5, last)
    p5 = base + i5 * length + j
    s5 = tl.zeros([BJ, BD], tl.float32)
    i6 = tl.minimum(i + 6, last)
    p6 = base + i6 * length + j
    s6 = tl.zeros([BJ, BD], tl.float32)
    i7 = tl.minimum(i + 7, last)
    p7 = base + i7 * length + j
    s7 = tl.zeros([BJ, BD], tl.float32)
    seen = tl.program_id(0) * BJ < first + i + 8  # later sources are not seen by any of these sinks
    if seen:
        v = tl.load(
            values + (head // groups) * value_head + j[:, None] * value_row + e[None, :],
            mask=inside[:, None],
            other=0.0,
        )
        for start in range(0, width, BD):
            d = start + tl.arange(0, BD)
            w = tl.load(output + d[None, :] * output_row + head * E + e[:, None], mask=d[None, :] < width, other=0.0)
            message = tl.dot(v, w, input_precision=PRECISION)
            s0 = _far(message, attention, wholes, p0, d, i0, inside, width, s0)
            s1 = _far(message, attention, wholes, p1, d, i1, inside, width, s1)
            s2 = _far(message, attention, wholes, p2, d, i2, inside, width, s2)
            s3 = _far(message, attention, wholes, p3, d, i3, inside, width, s3)
            s4 = _far(message, attention, wholes, p4, d, i4, inside, width, s4)
            s5 = _far(message, attention, wholes, p5, d, i5, inside, width, s5)
            s6 = _far(message, attention, wholes, p6, d, i6, inside, width, s6)
            s7 = _far(message, attention, wholes, p7, d, i7, inside, width, s7)
    _near(result, p0, sizes, i0, s0, seen, inside)
    _near(result, p1, sizes, i1, s1, seen, inside)
    _near(result, p2, sizes, i2, s2, seen, inside)
    _near(result, p3, sizes, i3, s3, seen, inside)
    _near(result, p4, sizes, i4, s4, seen, inside)
    _near(result, p5, sizes, i5, s5, seen, inside)
    _near(result, p6, sizes, i6, s6, seen, inside)
    _near(result, p7, sizes, i7, s7, seen, inside)


@triton.jit
def _near(result, place, sizes, sink, sums, seen, inside):  # type: ignore[no-untyped-def]
    # Columns after a sink carry no attention: their distance is the whole's size and their proximity 0.
    near = tl.where(seen, tl.maximum(tl.load(sizes + sink) - tl.sum(sums, 1), 0.0), 0.0)
    tl.store(result + place, near, mask=inside)
