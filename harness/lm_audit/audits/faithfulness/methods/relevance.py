"""Gradient attributions: AttnLRP, input x gradient and integrated gradients, per token and for a span.

All three read the objective at the position that predicts a token (P + t - 1). The objective of a span is the weighted
sum of its tokens' objectives, so that one backward pass gives exactly the weighted sum of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from lm_audit.audits.faithfulness.methods.backward import ATTN_LRP, GRADIENT, Rules, input_cotangents, scattered
from lm_audit.audits.faithfulness.methods.decoder import Decoder
from lm_audit.audits.faithfulness.methods.kept import KeptTensors
from lm_audit.audits.faithfulness.methods.trace import Trace, residual_states

ROW_BLOCK = 16
"""Rows whose cotangents travel together; larger blocks cost memory and no longer save time."""

LOGIT_BLOCK = 512
"""Positions whose logits exist at once."""


@dataclass(frozen=True)
class Objective:
    """What is explained: ``kind`` "logit" or "logprob" of the given tokens, or "max" (the largest logit)."""

    kind: str
    tokens: Tensor
    positions: Tensor


def objective_of(trace_ids: Sequence[int], rows: Sequence[int], kind: str, device: torch.device) -> Objective:
    """The objective of generation tokens at absolute positions ``rows``, predicted one position earlier."""
    positions = torch.tensor([row - 1 for row in rows], device=device)
    return Objective(kind, torch.tensor([trace_ids[row] for row in rows], device=device), positions)


@torch.no_grad()
def normed_cotangents(decoder: Decoder, state: Tensor, objective: Objective) -> tuple[Tensor, Tensor]:
    """Gradient of each objective in the normed state it is read from (R x d), and its value (R); ``state`` is T x d."""
    head = decoder.module.lm_head.weight
    gradients, values = [], []
    for positions, tokens in zip(
        torch.split(objective.positions, LOGIT_BLOCK), torch.split(objective.tokens, LOGIT_BLOCK), strict=True
    ):
        logits = decoder.module.lm_head(decoder.base.norm(state[positions])).float()
        if objective.kind == "max":
            tokens = logits.argmax(-1)
        value = logits.gather(1, tokens[:, None])[:, 0]
        if objective.kind == "logprob":
            value = value - logits.logsumexp(-1)
            # One minus p without cancellation, so that confident predictions keep their small gradient exactly.
            slope = logits.softmax(-1).neg_().scatter_(1, tokens[:, None], -torch.expm1(value)[:, None])
            gradients.append((slope.to(head.dtype) @ head).float())
        else:
            gradients.append(head[tokens].float())
        values.append(value)
    return torch.cat(gradients), torch.cat(values)


@dataclass(frozen=True)
class _Product:
    """Cotangents of the embeddings are multiplied by ``factor`` (T x d) and reduced to one number a position."""

    factor: Tensor
    reduce: str = "sum"

    def __call__(self, cotangents: Tensor) -> Tensor:
        product = cotangents.float() * self.factor[: cotangents.shape[1]]
        return torch.linalg.vector_norm(product, dim=-1) if self.reduce == "l2" else product.sum(-1)


def _rows(trace: Trace, objective: Objective, rules: Rules, product: _Product) -> Tensor:
    """Products R x T of each objective, in blocks of rows cut at the block's own causal prefix."""
    gradients, _ = normed_cotangents(trace.decoder, trace.states[-1], objective)
    result = torch.zeros(len(gradients), trace.length, device=trace.decoder.device)
    for start in range(0, len(gradients), ROW_BLOCK):
        block = slice(start, start + ROW_BLOCK)
        positions = objective.positions[block]
        stop = int(positions.max()) + 1
        result[block, :stop] = product(_back(trace, positions[:, None], gradients[block, None], stop, rules))
    return result


def _span(trace: Trace, objective: Objective, weights: Tensor, rules: Rules, product: _Product) -> Tensor:
    """Products T of the weighted sum of the objectives: one backward pass."""
    gradients, _ = normed_cotangents(trace.decoder, trace.states[-1], objective)
    stop = int(objective.positions.max()) + 1
    weighted = (gradients * weights.to(gradients)[:, None])[None]
    result = torch.zeros(trace.length, device=trace.decoder.device)
    result[:stop] = product(_back(trace, objective.positions[None], weighted, stop, rules))[0]
    return result


def _back(trace: Trace, positions: Tensor, gradients: Tensor, stop: int, rules: Rules) -> Tensor:
    """Embedding cotangents B x stop x d of gradients B x R x d in the normed states at ``positions`` (B x R)."""
    states = [state[None, :stop] for state in trace.states]
    top = scattered(trace.decoder, states[-1], positions, gradients.to(trace.decoder.dtype), rules)
    return input_cotangents(trace.decoder, states, top, (trace.rotary[0][:stop], trace.rotary[1][:stop]), rules)


@torch.no_grad()
def gradient_rows(trace: Trace, rows: Sequence[int], *, kind: str, lrp: bool, reduce: str = "sum") -> Tensor:
    """Embedding times gradient (``lrp``: AttnLRP relevance) of each row, R x T, signed; 0 from the row's token on."""
    trace.verify()
    objective = objective_of(trace.ids, rows, kind, trace.decoder.device)
    product = _Product(trace.states[0].float(), reduce)
    return _rows(trace, objective, ATTN_LRP if lrp else GRADIENT, product)


@torch.no_grad()
def gradient_span(
    trace: Trace, rows: Sequence[int], weights: Tensor, *, kind: str, lrp: bool, reduce: str = "sum"
) -> Tensor:
    """The same for the weighted sum of the rows' objectives, T."""
    trace.verify()
    objective = objective_of(trace.ids, rows, kind, trace.decoder.device)
    product = _Product(trace.states[0].float(), reduce)
    return _span(trace, objective, weights, ATTN_LRP if lrp else GRADIENT, product)


@dataclass(frozen=True)
class Integrated:
    """Integrated gradients R x T with its completeness check.

    ``change`` is f(input) - f(baseline) a row, ``points`` the number of interpolation points used. The attributions
    of a row would add up to ``change`` if the integral had converged.
    """

    rows: Tensor
    change: Tensor
    points: int

    @property
    def gap(self) -> Tensor:
        """How far the attributions of each row miss the change, as a share of it."""
        return (self.rows.sum(1) - self.change).abs() / self.change.abs().clamp_min(1e-12)


@torch.no_grad()
def integrated_gradients(
    trace: Trace,
    rows: Sequence[int],
    baseline_id: int,
    *,
    weights: Tensor | None = None,
    kind: str = "logprob",
    points: int = 20,
    tolerance: float | None = None,
    max_points: int = 320,
    kept: KeptTensors | None = None,
) -> Integrated:
    """Integrated gradients from the embedding of one baseline token at every position.

    The rule of the reference: ``points`` equally spaced points, weights 1/points with both ends halved. By causality
    the interpolated sequences of all rows are prefixes of the same ones: ``points`` forward passes in total; with
    ``weights`` (the objective of a span, one row in the result) also only that many backward passes. With
    ``tolerance`` the grid is refined, old points kept, until the completeness gap is below it or ``max_points`` is
    reached. ``kept`` are the points that an earlier process computed, and where this one keeps its own.
    """
    objective = objective_of(trace.ids, rows, kind, trace.decoder.device)
    path = _Path(trace, baseline_id, objective, weights, kept)
    trace.verify()
    grid = torch.linspace(0.0, 1.0, points).tolist() if points > 1 else [1.0]
    halves = {0.0, 1.0} if points > 1 else set()
    zero = torch.zeros((), device=trace.decoder.device)
    total = sum((path.scores(point) * (0.5 if point in halves else 1.0) for point in grid), zero)
    while True:
        result = Integrated(total / len(grid), path.change(), len(grid))
        refined = 2 * len(grid) - 1
        if tolerance is None or float(result.gap.max()) <= tolerance or not len(grid) < refined <= max_points:
            return result
        between = [(a + b) / 2 for a, b in pairwise(grid)]
        total = total + sum((path.scores(point) for point in between), zero)
        grid = sorted([*grid, *between])


class _Path:
    """The straight line from baseline to input embeddings, and the objective's gradient along it."""

    def __init__(
        self, trace: Trace, baseline_id: int, objective: Objective, weights: Tensor | None, kept: KeptTensors | None
    ):
        self.trace, self.objective, self.weights, self.kept = trace, objective, weights, kept
        self.inputs = trace.states[0].float()
        embedding = trace.decoder.module.get_input_embeddings()
        token = torch.tensor([baseline_id], device=trace.decoder.device)
        self.baseline = embedding(token).float().expand_as(self.inputs)
        self.difference = self.inputs - self.baseline
        self.ends: dict[float, Tensor] = {}

    def scores(self, point: float) -> Tensor:
        """Gradient times the whole line, R x T (one row where the objective is a span's)."""
        device = self.trace.decoder.device
        found = self._at(point) if self.kept is None else self.kept.get(lambda: self._at(point), "point", point)
        if point in (0.0, 1.0):
            self.ends[point] = found[1].to(device)
        return found[0].to(device)

    def _at(self, point: float) -> list[Tensor]:
        """The same, and at both ends the objective itself."""
        decoder = self.trace.decoder
        embeddings = (self.baseline + point * self.difference).to(decoder.dtype)
        states = residual_states(decoder, embeddings)
        along = Trace(decoder, self.trace.ids, states, self.trace.probes, [], self.trace.rotary)
        ends: list[Tensor] = []
        if point in (0.0, 1.0):
            values = normed_cotangents(decoder, states[-1], self.objective)[1]
            ends = [values if self.weights is None else (values * self.weights.to(values)).sum()[None]]
        if self.weights is None:
            return [_rows(along, self.objective, GRADIENT, _Product(self.difference)), *ends]
        return [_span(along, self.objective, self.weights, GRADIENT, _Product(self.difference))[None], *ends]

    def change(self) -> Tensor:
        """f(input) - f(baseline) of each row."""
        for point in (0.0, 1.0):
            if point not in self.ends:
                self.scores(point)
        return self.ends[1.0] - self.ends[0.0]
