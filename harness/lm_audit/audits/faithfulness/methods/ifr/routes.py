"""Information flow routes (IFR) as sums of direct attention edges: per-token matrix and span form.

Source: Ferrando & Voita 2024 (proximity of parts), arXiv 2512.15663 (sum over layers). A token's row sits at its own
position, not at the one that predicts it, and contains the token itself. This is not the graph search of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lm_audit.audits.faithfulness.methods.ifr.proximity import proximity, sink_proximities, span_proximities
from lm_audit.audits.faithfulness.methods.trace import Trace

GUARD = 1e-12
"""Added to every total that divides, so that an empty total gives zeros."""


@dataclass(frozen=True)
class Flow:
    """Token scores of one span (T) with their by-products.

    ``residual`` is the share of the residual edge summed over layers, ``heads`` the totals by head, ``ffn`` and
    ``ffn_residual`` the shares of each layer's MLP output and of its residual edge; they never enter the token scores.
    """

    tokens: Tensor
    heads: Tensor
    residual: float
    ffn: Tensor
    ffn_residual: Tensor


@dataclass(frozen=True)
class FlowMatrix:
    """Token scores of many rows (G x T), head totals (G x H), residual shares (G, summed over layers)."""

    tokens: Tensor
    heads: Tensor
    residual: Tensor


@torch.no_grad()
def flow_matrix(trace: Trace, rows: Sequence[int], *, eps: float | None = None, threshold: float = 0.0) -> FlowMatrix:
    """IFR of the rows (absolute positions, ascending): ``A[i, j]`` summed over layers, range 0..L, 0 for j > i."""
    positions = torch.tensor(list(rows), device=trace.decoder.device)
    tokens = torch.zeros(len(positions), trace.length, device=positions.device)
    heads = torch.zeros(len(positions), trace.decoder.heads, device=positions.device)
    residual = torch.zeros(len(positions), device=positions.device)
    for index in range(len(trace.decoder.layers)):
        layer = trace.open(index, eps)
        inputs = trace.states[index].float()
        done = 0
        for chunk in layer.row_chunks(positions):
            piece = slice(done, done + len(chunk))
            done += len(chunk)
            attention = layer.probabilities(chunk)
            wholes = inputs[chunk] + layer.mix(attention) + layer.output_bias
            edges = sink_proximities(layer, attention, wholes, chunk, threshold)  # H x R x T
            kept = proximity(inputs[chunk], wholes, threshold)
            total = edges.sum((0, 2)) + kept + GUARD
            tokens[piece] += edges.sum(0) / total[:, None]
            heads[piece] += (edges.sum(2) / total).T
            residual[piece] += kept / total
    return FlowMatrix(tokens, heads, residual)


@torch.no_grad()
def flow_span(
    trace: Trace,
    rows: Sequence[int],
    weights: Tensor | None = None,
    *,
    eps: float | None = None,
    threshold: float = 0.0,
) -> Flow:
    """IFR of a whole span at once: sinks and their attention rows are summed first, then one proximity a source.

    ``weights`` (one a row) are divided by their sum. An approximation of the sum of rows, since proximity is not
    linear; cost O(T H d L) instead of O(G T H d L).
    """
    device = trace.decoder.device
    positions = torch.tensor(list(rows), device=device)
    omega = torch.ones(len(positions), device=device) if weights is None else weights.to(device).float()
    if weights is not None:
        omega = omega / (omega.sum() + GUARD)
    stop = int(positions.max()) + 1
    layers = len(trace.decoder.layers)
    tokens = torch.zeros(trace.length, device=device)
    heads = torch.zeros(trace.decoder.heads, device=device)
    ffn, ffn_residual = torch.zeros(layers, device=device), torch.zeros(layers, device=device)
    residual = torch.zeros((), device=device)
    for index in range(layers):
        layer = trace.open(index, eps)
        pooled = layer.pooled(positions, omega, rows[0])
        before = omega @ trace.states[index][positions].float()
        after = omega @ trace.states[index + 1][positions].float()
        whole = before + layer.mix(pooled[:, None])[0] + omega.sum() * layer.output_bias
        edges = span_proximities(layer, pooled, whole, stop, threshold)
        kept = proximity(before, whole, threshold)
        total = edges.sum() + kept + GUARD
        tokens[:stop] += edges.sum(0) / total
        heads += edges.sum(1) / total
        residual += kept / total
        through, passed = proximity(after - whole, after), proximity(whole, after)
        ffn[index] = through / (through + passed + GUARD)
        ffn_residual[index] = passed / (through + passed + GUARD)
    return Flow(tokens, heads, float(residual), ffn, ffn_residual)
