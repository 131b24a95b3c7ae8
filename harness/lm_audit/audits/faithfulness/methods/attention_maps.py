"""Attention as an explanation: raw mean, the cumulative last-layer form, and rollout.

Rows belong to generation tokens and are read at the predicting position (P + t - 1), where the choice was made. Layers
are streamed and rows chunked; sources: Abnar & Zuidema 2020 (rollout).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lm_audit.audits.faithfulness.methods.ifr.heads import Heads
from lm_audit.audits.faithfulness.methods.trace import Trace


@torch.no_grad()
def mean_attention(trace: Trace, rows: Sequence[int]) -> Tensor:
    """Attention of the rows averaged over all layers and heads, G x T."""
    positions = torch.tensor(list(rows), device=trace.decoder.device)
    total = torch.zeros(len(positions), trace.length, device=positions.device)
    for index in range(len(trace.decoder.layers)):
        total += _head_mean(trace.open(index), positions)
    return total / len(trace.decoder.layers)


@torch.no_grad()
def cumulative_attention(trace: Trace, rows: Sequence[int]) -> Tensor:
    """Last-layer attention averaged over heads and over all query rows up to each row, G x T.

    The form of the reference package; by causality the forward passes over prefixes that it makes are one cumulative
    sum.
    """
    layer = trace.open(len(trace.decoder.layers) - 1)
    wanted = {position: index for index, position in enumerate(rows)}
    result = torch.zeros(len(wanted), trace.length, device=trace.decoder.device)
    running = torch.zeros(trace.length, device=trace.decoder.device)
    for chunk in layer.row_chunks(torch.arange(max(wanted) + 1, device=trace.decoder.device)):
        sums = running + layer.probabilities(chunk).mean(0).cumsum(0)
        for offset, position in enumerate(chunk.tolist()):
            if position in wanted:
                result[wanted[position]] = sums[offset] / (position + 1)
        running = sums[-1]
    return result


@torch.no_grad()
def attention_rollout(trace: Trace, rows: Sequence[int]) -> Tensor:
    """Rows of the product of ``rownorm(mean over heads + I)`` from the top layer down, G x T.

    Multiplying the wanted rows from the left keeps the cost at G T^2 a layer, without a T x T product.
    """
    positions = torch.tensor(list(rows), device=trace.decoder.device)
    flow = torch.nn.functional.one_hot(positions, trace.length).float()
    for index in reversed(range(len(trace.decoder.layers))):
        layer = trace.open(index)
        below = torch.zeros_like(flow)
        for chunk in layer.row_chunks(torch.arange(trace.length, device=positions.device)):
            mixing = layer.probabilities(chunk).mean(0)
            mixing[torch.arange(len(chunk), device=positions.device), chunk] += 1.0
            below += flow[:, chunk] @ (mixing / mixing.sum(-1, keepdim=True))
        flow = below
    return flow


def _head_mean(layer: Heads, positions: Tensor) -> Tensor:
    return torch.cat([layer.probabilities(chunk).mean(0) for chunk in layer.row_chunks(positions)])
