"""Runs the attention kernels and compares them with masks in float64; in Triton's interpreter where that is asked for.

A script: ``TRITON_INTERPRET=1 python -m tests.models.kernels.attention_kernel_check``.
"""

from __future__ import annotations

import os
from itertools import pairwise

import torch
from torch import Tensor

from lm_audit.models.kernels import attention as kernels
from tests.triton_interpreter import mend

DEVICE = "cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu"
SHAPES = [(2, 4, 2, 70, 150, 16), (1, 8, 2, 40, 40, 32), (2, 4, 4, 33, 100, 64)]
"""Rows, heads, key heads, queries, keys, width of a head."""
ON_A_GPU = [(2, 32, 8, 700, 1900, 128), (1, 8, 1, 300, 300, 256)]


def by_masks(query: Tensor, key: Tensor, value: Tensor, sees: Tensor) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    key, value = (one.repeat_interleave(groups, 1).double() for one in (key, value))
    scores = (query.double() @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5
    weights = scores.masked_fill(~sees[:, None], -torch.inf).softmax(-1)
    return torch.matmul(weights, value).transpose(1, 2)


def off(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


def forks(rows: int, queries: int, keys: int) -> Tensor:
    """Where the subtree of each key ends: all of the cached ones go on, then some branches of random lengths."""
    ends = torch.full((rows, keys), queries)
    for row in range(rows):
        cuts = [*sorted(torch.randint(1, queries, (5,)).tolist()), queries]
        for begin, end in pairwise(cuts):
            ends[row, keys - queries + begin : keys - queries + end] = end
    return ends.to(DEVICE)


def trees(query: Tensor, key: Tensor, value: Tensor) -> list[float]:
    (rows, _, queries, width), keys = query.shape, key.shape[2]
    places = torch.arange(queries, device=DEVICE)
    own, found = places.expand(rows, queries) + keys - queries, []
    for ends in (None, forks(rows, queries, keys)):
        sees = torch.arange(keys, device=DEVICE) <= own[:, :, None]
        sees = sees if ends is None else sees & (ends[:, None] > places[None, :, None])
        what = kernels.seen(own, ends, keys, width)
        found.append(off(kernels.attend_seen(query, key, value, what, width**-0.5), by_masks(query, key, value, sees)))
    return found


def rows_of_their_own(query: Tensor, key: Tensor, value: Tensor) -> list[float]:
    columns, width, found = torch.arange(key.shape[2], device=DEVICE), query.shape[-1], []
    lengths = torch.randint(0, key.shape[2], (len(query),), device=DEVICE)
    for window in (None, 20):
        sees = columns <= lengths[:, None]
        sees = sees if window is None else sees & (columns > lengths[:, None] - window)
        wanted = by_masks(query, key, value, sees[:, None])
        for least in (kernels._LEAST_COLUMNS, 16):  # whole, and in pieces
            kept, kernels._LEAST_COLUMNS = kernels._LEAST_COLUMNS, least
            found.append(off(kernels.attend_rows(query, key, value, lengths, width**-0.5, window), wanted))
            kernels._LEAST_COLUMNS = kept
    return found


def check(dtype: torch.dtype, limit: float) -> None:
    for rows, heads, key_heads, queries, keys, width in SHAPES + (ON_A_GPU if DEVICE == "cuda" else []):
        query = torch.randn(rows, queries, heads, width, dtype=dtype, device=DEVICE).transpose(1, 2)
        key, value = (torch.randn(rows, key_heads, keys, width, dtype=dtype, device=DEVICE) for _ in range(2))
        worst = max(*trees(query, key, value), *rows_of_their_own(query[:, :, :1], key, value))
        assert worst < limit, (dtype, rows, heads, key_heads, queries, keys, width, worst)


if __name__ == "__main__":
    mend()
    torch.manual_seed(0)
    check(torch.float32, 1e-5)
    if DEVICE == "cuda":
        check(torch.bfloat16, 1e-2)
    print("kernels agree")
