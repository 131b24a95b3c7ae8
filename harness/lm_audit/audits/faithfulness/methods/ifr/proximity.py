"""Proximity of parts to a whole: how far an L1 distance shrinks when a part is taken into account.

``prox(c, y) = max(0, |y|_1 - |c - y|_1)`` (Ferrando & Voita 2024). The parts here are attention messages
``alpha[h, j] F[h, j]`` with ``F[h, j] = W_O[:, h] v[j, g(h)]``; they are never held for more than a block of sources.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lm_audit.audits.faithfulness.methods.ifr.heads import Heads, gpu_kernels

CPU_BLOCK = 150_000
"""Floats of one block of messages on a CPU: what stays in the second-level cache while every sink reads it."""

GPU_BLOCK = 64 * 2**20
"""Floats of one block on a GPU."""


def proximity(part: Tensor, whole: Tensor, threshold: float = 0.0) -> Tensor:
    """``max(0, |whole| - |part - whole|)`` over the last axis, in L1; values under the threshold count as 0."""
    shrunk = (whole.abs().sum(-1) - (part - whole).abs().sum(-1)).clamp_min(0.0)
    return shrunk if threshold <= 0.0 else torch.where(shrunk < threshold, 0.0, shrunk)


def message_blocks(heads: Heads, stop: int) -> Iterator[tuple[int, int, Tensor]]:
    """Messages F of sources ``first..last-1`` as H x J x d in float32, block by block up to position ``stop``."""
    decoder = heads.decoder
    groups = decoder.heads // decoder.kv_heads
    output = torch.unflatten(heads.layer.output_weight.float(), 1, (decoder.heads, decoder.head_width)).permute(1, 2, 0)
    budget = CPU_BLOCK if output.device.type == "cpu" else GPU_BLOCK
    size = max(1, budget // (decoder.heads * decoder.width))
    for first in range(0, stop, size):
        last = min(first + size, stop)
        values = heads.messages[:, first:last].float().repeat_interleave(groups, dim=0)  # H x J x e
        yield first, last, torch.bmm(values, output)


def span_proximities(heads: Heads, pooled: Tensor, whole: Tensor, stop: int, threshold: float = 0.0) -> Tensor:
    """Proximities of the pooled messages ``pooled[h, j] F[h, j]`` to one vector ``whole`` (d): H x stop."""
    kernels = gpu_kernels(heads.messages)
    if kernels is not None and threshold <= 0.0:
        fused: Tensor = kernels.span_proximities(heads.messages, heads.layer.output_weight, pooled, whole, stop)
        return fused
    ones = torch.ones_like(whole)
    size = whole.abs() @ ones
    result = torch.zeros(pooled.shape[0], stop, device=pooled.device)
    for first, last, messages in message_blocks(heads, stop):
        flat = messages.flatten(0, 1)
        torch.addcmul(-whole, flat, pooled[:, first:last].reshape(-1, 1), out=flat)
        result[:, first:last] = (size - flat.abs_() @ ones).view(-1, last - first)
    result = result.clamp_min_(0.0).mul_(pooled[:, :stop] > 0.0)
    return result if threshold <= 0.0 else torch.where(result < threshold, 0.0, result)


def sink_proximities(heads: Heads, attention: Tensor, wholes: Tensor, rows: Tensor, threshold: float = 0.0) -> Tensor:
    """Proximities to every sink's own vector: ``attention`` H x G x T, ``wholes`` G x d; result H x G x T.

    The rows are consecutive positions.
    For each block of sources and each sink three passes over memory that is already in the cache: the difference
    ``alpha F - y``, its absolute value, and a product with ones for the sum.
    """
    kernels = gpu_kernels(heads.messages)
    if kernels is not None and threshold <= 0.0:
        fused: Tensor = kernels.sink_proximities(
            heads.messages, heads.layer.output_weight, attention, wholes, int(rows[0])
        )
        return fused
    ones = torch.ones(wholes.shape[-1], device=wholes.device)
    negated, limits = -wholes, rows.tolist()
    distances = (wholes.abs() @ ones)[None, :, None].expand_as(attention).clone()
    for first, last, messages in message_blocks(heads, limits[-1] + 1):
        flat = messages.flatten(0, 1)
        shape = (len(limits), attention.shape[0], last - first)
        weights = attention[:, :, first:last].transpose(0, 1).reshape(len(limits), -1, 1)
        buffer, found = torch.empty_like(flat), torch.zeros(len(limits), len(flat), device=flat.device)
        for sink, position in enumerate(limits):
            if position >= first:
                torch.addcmul(negated[sink], flat, weights[sink], out=buffer)
                torch.mv(buffer.abs_(), ones, out=found[sink])
        distances[:, :, first:last] -= found.view(shape).transpose(0, 1)
    # Columns after a sink carry no attention: their distance is the whole's size and their proximity 0.
    shrunk = distances.clamp_min_(0.0).mul_(attention > 0.0)
    return shrunk if threshold <= 0.0 else torch.where(shrunk < threshold, 0.0, shrunk)
