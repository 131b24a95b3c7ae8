"""A seeded draw of so many items, for audits whose items need no order and no strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def drawn(items: Sequence[Item], n: int | None, *, seed: int) -> list[Item]:
    """``n`` of the items, drawn without replacement by the seed and kept in their order; all for ``None`` or fewer."""
    if n is None or n >= len(items):
        return list(items)
    chosen = np.random.default_rng(seed).choice(len(items), size=n, replace=False)
    return [items[number] for number in sorted(chosen.tolist())]
