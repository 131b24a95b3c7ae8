"""A seeded sample of a public set that keeps every category in proportion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Row = TypeVar("Row", bound=Mapping[str, Any])


def stratified_sample(
    rows: Sequence[Row], n: int | None, key: Callable[[Row], Hashable], *, seed: int = 0
) -> list[Row]:
    """At most n rows in their old order, each stratum by its share (at least one row each); all of them for ``None``.

    Shares are rounded by largest remainder, so the sample has exactly n rows where there are fewer strata than n. Where
    there are more, it has one of each.
    """
    if n is None or n >= len(rows):
        return list(rows)
    strata: dict[Hashable, list[int]] = {}
    for number, row in enumerate(rows):
        strata.setdefault(key(row), []).append(number)
    rng = np.random.default_rng(seed)
    kept: list[int] = []
    for members, size in zip(strata.values(), _sizes([len(members) for members in strata.values()], n), strict=True):
        kept += rng.choice(members, size=size, replace=False).tolist()
    return [rows[number] for number in sorted(kept)]


def _sizes(counts: Sequence[int], n: int) -> list[int]:
    exact = np.array(counts) * n / sum(counts)
    sizes = np.maximum(np.floor(exact).astype(int), 1)
    for number in np.argsort(sizes - exact, kind="stable"):
        if sizes.sum() >= n:
            break
        sizes[number] += sizes[number] < counts[number]
    return [int(size) for size in sizes]
