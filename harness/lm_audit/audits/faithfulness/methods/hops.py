"""Multi-hop attribution: from the answer through the thinking to the prompt, by re-weighted spans.

The recursion knows nothing of how a span is attributed: it is given a function from (span, weights) to a vector over
columns. Source: arXiv 2512.15663 and the FlashTrace method built on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.passage.spans import Span, near_equal_segments

Vector = NDArray[np.float64]
SpanFunction = Callable[[Span, Vector | None], Vector]
"""``(span, weights or None) -> vector over columns``; weights are one number a token of the span."""

GUARD = 1e-12


@dataclass(frozen=True)
class Hops:
    """The result of a recursion over columns (prompt part, then generation).

    ``vectors`` are the hop vectors from hop 0 on, ``observed`` what each of them adds to the result, ``total`` their
    sum, ``ratios`` the share of mass still travelling after each hop, ``mask`` the columns that count as observed.
    """

    vectors: Vector
    observed: Vector
    ratios: tuple[float, ...]
    mask: Vector
    segments: tuple[Span, ...] = ()

    @property
    def total(self) -> Vector:
        """Sum of what was observed over all hops."""
        total: Vector = self.observed.sum(axis=0)
        return total

    @property
    def mean(self) -> Vector:
        """The sum divided by the number of its terms (hops + 1)."""
        return self.total / len(self.observed)


def observation_mask(columns: int, prompt: int, start: int, hidden: Span | None) -> Vector:
    """1 for columns before the recursive span (generation tokens before it count as observed), 0 from it on."""
    mask = np.zeros(columns)
    mask[: prompt + start] = 1.0
    if hidden is not None:
        mask[prompt + hidden[0] : prompt + hidden[1] + 1] = 0.0
    return mask


def multi_hop(
    attribute_span: SpanFunction,
    prompt: int,
    columns: int,
    *,
    start: Span,
    through: Span,
    hops: int,
    mask: Vector,
    keep: Vector | None = None,
    start_weights: Vector | None = None,
    renormalise: bool = True,
) -> Hops:
    """Hop 0 over ``start``, then ``hops`` times over ``through``, weighted by the mass that arrived there.

    ``keep`` removes columns before masses are taken; ``renormalise=False`` leaves out the ratios (every hop adds its
    vector as it is). When no mass is left the remaining hops are zero.
    """
    keep = np.ones(columns) if keep is None else keep
    inner = slice(prompt + through[0], prompt + through[1] + 1)
    vectors = [attribute_span(start, start_weights) * keep]
    observed = [vectors[0] * mask]
    ratio = _share(vectors[0], inner)
    ratios = [ratio]
    weights = vectors[0][inner]
    for _ in range(hops):
        vector = np.zeros(columns)
        if weights.sum() > 0.0 and (ratio > 0.0 or not renormalise):
            scaled = weights / (weights.sum() + GUARD) if renormalise else weights
            vector = attribute_span(through, scaled) * keep
        vectors.append(vector)
        observed.append((ratio if renormalise else 1.0) * vector * mask)
        ratio *= _share(vector, inner)
        ratios.append(ratio)
        weights = vector[inner]
    return Hops(np.stack(vectors), np.stack(observed), tuple(ratios) if renormalise else (), mask)


def _share(vector: Vector, inner: slice) -> float:
    total = float(vector.sum())
    return float(vector[inner].sum()) / (total + GUARD) if total > 0.0 else 0.0


def split_hops(
    attribute_span: SpanFunction, prompt: int, columns: int, *, start: Span, thinking: Span, parts: int, mask: Vector
) -> Hops:
    """Hop 0, then one hop for each of ``parts`` segments of the thinking, last first, each passing mass to earlier
    ones.
    """
    segments = near_equal_segments(thinking, parts)
    vectors = [attribute_span(start, None)]
    observed = [vectors[0] * mask]
    pending = {segment: vectors[0][prompt + segment[0] : prompt + segment[1] + 1].copy() for segment in segments}
    for segment in reversed(segments):
        mass = pending[segment]
        vector = np.zeros(columns)
        if mass.sum() > 0.0:
            vector = attribute_span(segment, mass)
            vector[prompt + segment[0] : prompt + segment[1] + 1] = 0.0
        passed = vector * (mass.sum() / (vector.sum() + GUARD))
        vectors.append(vector)
        observed.append(passed * mask)
        for earlier in segments[: segments.index(segment)]:
            pending[earlier] += passed[prompt + earlier[0] : prompt + earlier[1] + 1]
    return Hops(np.stack(vectors), np.stack(observed), (), mask, tuple(segments))
