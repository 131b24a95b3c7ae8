"""Runs the GPU kernels, in Triton's interpreter where that is asked for, and compares them with plain sums.

A script: ``TRITON_INTERPRET=1 python -m tests.audits.faithfulness.kernel_check``.
"""

from __future__ import annotations

import os

import torch

from lm_audit.audits.faithfulness.methods.ifr import kernels
from tests.triton_interpreter import mend

DEVICE = "cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu"
SHAPES = (
    # heads, KV heads, length, rows, head width, model width, window
    (4, 2, 150, 70, 16, 96, None),
    (4, 2, 150, 70, 16, 96, 20),
    (6, 2, 90, 40, 32, 80, None),
    (2, 1, 330, 300, 16, 48, None),  # blocks that need no mask, between others
    (2, 1, 256, 256, 16, 48, None),
)


def plain_attention(queries: torch.Tensor, keys: torch.Tensor, first: int, window: int | None) -> torch.Tensor:
    """Probabilities H x R x T."""
    heads, rows, width = queries.shape
    scale: float = width**-0.5
    scores = torch.einsum("hre,hte->hrt", queries, keys.repeat_interleave(heads // keys.shape[0], 0)) * scale
    distance = first + torch.arange(rows, device=DEVICE)[:, None] - torch.arange(keys.shape[1], device=DEVICE)[None]
    seen = (distance >= 0) if window is None else (distance >= 0) & (distance < window)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)


def plain_proximity(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """Last axis reduced."""
    return (whole.abs().sum(-1) - (part - whole).abs().sum(-1)).clamp_min(0)


def check(
    heads: int, kv_heads: int, length: int, rows: int, width: int, model: int, window: int | None
) -> tuple[torch.Tensor, ...]:
    """Largest differences of the kernels."""
    queries, keys, values = (
        torch.randn(n, t, width, device=DEVICE) for n, t in ((heads, rows), (kv_heads, length), (kv_heads, length))
    )
    output = 0.1 * torch.randn(model, heads * width, device=DEVICE)
    weights, first = torch.rand(rows, device=DEVICE), length - rows
    attention = plain_attention(queries, keys, first, window)
    pooled, sums = kernels.pooled_attention(queries, keys, first, weights, width**-0.5, window)
    again, _ = kernels.pooled_attention(queries, keys, first, weights, width**-0.5, window, sums)
    expected = torch.einsum("hrt,r->ht", attention, weights)
    messages = torch.einsum(
        "hje,dhe->hjd", values.repeat_interleave(heads // kv_heads, 0), output.view(model, heads, width)
    )
    whole, wholes = 3 * torch.randn(model, device=DEVICE), 3 * torch.randn(rows, model, device=DEVICE)
    span = kernels.span_proximities(values, output, expected, whole, length)
    sinks = kernels.sink_proximities(values, output, attention, wholes, first)
    return (
        (pooled - expected).abs().max(),
        (again - pooled).abs().max(),
        (span - plain_proximity(expected[..., None] * messages, whole)).abs().max(),
        (sinks - plain_proximity(attention[..., None] * messages[:, None], wholes[None, :, None])).abs().max(),
    )


if __name__ == "__main__":
    mend()
    torch.manual_seed(0)
    for shape in SHAPES:
        differences = [float(value) for value in check(*shape)]
        assert max(differences[:2]) < 1e-5 and max(differences) < 1e-3, (shape, differences)
    print("kernels agree")
