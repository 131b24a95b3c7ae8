"""Designs in which two groups, or more, are compared over the same requests: uneven, and with shares near 0 or 1.

For ``coverage_changes.py``. Without an effect both runs have the same law, or the difference turned its sign: the
distance of the groups is then as it was. Draws of a request are answers that came; some requests have none of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]
Make = Callable[[np.random.Generator, float], tuple[Rows, Rows]]
NOISE = 0.5
REQUEST, OWN = 1.0, 0.5
"""Standard deviations of a request, and of a group named in it."""


@dataclass(frozen=True)
class Asked:
    """Requests that name each of several groups; an item is a request that names a group.

    ``draws``: how many answers each of them may have; ``level``: the latent mean of an answer, of which those above 0
    are refusals (-1.5 at 11 %, -2.5 at 2 %; 1.5 at 89 %); ``gap``: by how much the first group lies higher.
    ``second`` is what the second run does without an effect: the same ("same"), the groups exchanged in each request
    ("turned"), the difference of the other sign with other groups' parts ("turned, others").
    Requests have answers of their own number of each group, or, where the difference turns, of all groups alike.
    """

    requests: int = 24
    groups: int = 2
    draws: tuple[int, ...] = (3,)
    level: float = -1.0
    gap: float = 0.0
    second: str = "same"
    binary: bool = True
    missing: float = 0.0

    def __call__(self, rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        shape = (self.requests, self.groups)
        request = self.level + REQUEST * rng.normal(size=(self.requests, 1))
        own = OWN * rng.normal(size=shape)
        own[:, 0] += self.gap
        later = own.copy()
        if self.second == "turned":
            later = own[:, ::-1].copy()
        elif self.second == "turned, others":
            later = OWN * rng.normal(size=shape)
            later[:, 1] += self.gap
        later[:, 0] += effect * math.hypot(REQUEST, OWN)
        if self.second == "same":
            counts = rng.choice(self.draws, size=shape)
            counts[rng.random(shape) < self.missing] = 0
            counts[0] = np.maximum(counts[0], 1)
        else:
            # Where groups that are exchanged have other numbers of draws of a request, their distance changes.
            counts = np.repeat(rng.choice(self.draws, size=(self.requests, 1)), self.groups, axis=1)
        return self._run(rng, request + own, counts), self._run(rng, request + later, counts)

    def _run(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> Rows:
        rows = []
        for (r, g), mean in np.ndenumerate(means):
            for draw in range(int(counts[r, g])):
                latent = float(mean + NOISE * rng.normal())
                value = float(latent > 0) if self.binary else latent
                rows.append({"item": f"{r}/{g}/{draw}", "request": f"r{r}", "g": f"g{g}", "v": value})
        return rows


def clustered(sizes: tuple[int, ...], *, level: float | None, sd: float = 0.7) -> Make:
    """Two groups whose items lie in clusters of so many of each group; with ``level`` answers of 0 and 1.

    Clusters have a part of their change in common, with each group's own added; the effect is on the first group.
    """

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = [rng.normal(size=(2, size)) for size in sizes]
        runs: tuple[Rows, Rows] = ([], [])
        for number, run in enumerate(runs):
            for c, items in enumerate(base):
                part = sd * rng.normal() + sd * rng.normal(size=(2, 1))
                values = items + part / math.sqrt(2) + NOISE * rng.normal(size=items.shape)
                values[0] += number * effect
                if level is not None:
                    values = (values + level > 0).astype(np.float64)
                run += [
                    {"item": f"{c}/{g}/{k}", "request": f"r{c}", "g": f"g{g}", "v": float(value)}
                    for (g, k), value in np.ndenumerate(values)
                ]
        return runs

    return make


UNEVEN = (1, 1, 1, 2, 2, 3, 4, 5, 8, 12, 16, 20)
"""Sizes of twelve clusters."""
