"""A preference grid of at most so many items: templates times word pairs, both drawn by the seed."""

from __future__ import annotations

import math
from dataclasses import replace

from lm_audit.audits.bias.grid.lexicon.parts import PreferenceSet
from lm_audit.audits.drawing import drawn


def smaller_grid(grid: PreferenceSet, limit: int | None, *, seed: int) -> PreferenceSet:
    """The grid with templates times word pairs at most ``limit``, cut alike on both sides; whole for ``None``.

    The two sides are the clusters that an interval is made of: cut alike, the fewer of them are as many as can be.
    """
    templates, pairs = len(grid.templates), len(grid.pairs)
    if limit is None or templates * pairs <= limit:
        return grid
    fewer = max(1, min(templates, pairs, math.isqrt(limit)))
    more = min(max(templates, pairs), limit // fewer)
    sizes = (fewer, more) if templates <= pairs else (more, fewer)
    return replace(
        grid,
        templates=tuple(drawn(grid.templates, sizes[0], seed=seed)),
        pairs=tuple(drawn(grid.pairs, sizes[1], seed=seed)),
    )
