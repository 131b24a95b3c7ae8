"""Cheaper deletion curves and how far they are from the strict one.

The strict curve deletes one feature a step. A chunked curve deletes in k groups, a top-k curve deletes the k highest
features one by one and the rest at once; both visit states of the strict path only, so the strict scores give them and
their error without another forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve
from lm_audit.audits.faithfulness.deletion.metrics import area, corrected_response, deletion_groups, monotone_response
from lm_audit.errors import UsageError


@dataclass(frozen=True)
class Approximation:
    """An approximate curve's scores, the sequences it needs, and its differences from the strict scores."""

    kind: str
    k: int
    sequences: int
    rise: float
    mas: float
    rise_ap: float
    rise_error: float
    mas_error: float
    rise_ap_error: float

    def row(self) -> dict[str, Any]:
        """A flat record."""
        return {"item": f"{self.kind}-{self.k}", **self.__dict__}


def approximations(
    strict: DeletionCurve, *, top: Sequence[int] = (5, 10), chunks: Sequence[int] = (5, 20)
) -> list[Approximation]:
    """Top-k and chunked approximations of a strict curve (one feature a step); ``UsageError`` for another curve."""
    if any(len(group) != 1 for group in strict.groups):
        raise UsageError("approximations need a strict curve; make it with steps=None (one feature a step)")
    features = len(strict.groups)
    plans = [("top", k, [*range(min(k, features) + 1), *([features] if k < features else [])]) for k in top]
    plans += [("chunked", k, _chunk_states(strict, k)) for k in chunks]
    return [_approximation(strict, kind, k, states) for kind, k, states in plans]


def _chunk_states(strict: DeletionCurve, k: int) -> list[int]:
    sizes = [len(group) for group in deletion_groups(strict.order, k)]
    return [0, *np.cumsum(sizes).tolist()]


def _approximation(strict: DeletionCurve, kind: str, k: int, states: list[int]) -> Approximation:
    density, response = strict.density[states], monotone_response(strict.scores[states])
    if kind == "top":
        # Steps of unequal size: the area is taken over the share of features deleted.
        places = np.array(states, dtype=np.float64) / max(1, states[-1])
        every = np.linspace(0.0, 1.0, len(strict.scores))
        density, response = np.interp(every, places, density), np.interp(every, places, response)
    penalty = np.abs(response - density)
    rise, mas, rise_ap = area(response), area(corrected_response(response, penalty)), area(response + penalty)
    return Approximation(
        kind, k, len(states), rise, mas, rise_ap, rise - strict.rise, mas - strict.mas, rise_ap - strict.rise_ap
    )
