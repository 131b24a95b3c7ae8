"""A design under which an audit's own function reports figures of known truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lm_audit.stats import Estimate

Side = Literal["either", "above", "below"]


@dataclass(frozen=True)
class Told:
    """What was reported, what is true, and what no effect would give (``None`` where there is no such value).

    ``side``: where from ``null`` an effect would lie.
    """

    estimate: Estimate
    truth: float
    null: float | None = None
    side: Side = "either"

    @property
    def holds(self) -> bool | None:
        """Whether the interval holds the truth; ``None`` without an interval."""
        low, high = self.estimate.low, self.estimate.high
        if low is None or high is None:
            return None
        dust = 1e-9 * max(1.0, abs(low), abs(high))
        return low - dust <= self.truth <= high + dust

    @property
    def invents(self) -> bool | None:
        """Whether the interval shows an effect where there is none; ``None`` where there is one, or no null value."""
        low, high = self.estimate.low, self.estimate.high
        if low is None or high is None or self.null is None or abs(self.truth - self.null) > 1e-9:
            return None
        above, below = low > self.null, high < self.null
        return {"either": above or below, "above": above, "below": below}[self.side]


Trial = Callable[[np.random.Generator, int, bool], Mapping[str, Told]]
"""Draws rows and lets the audit report them, with an effect or without; by the names of the metrics, which may be
families as metric tables have them."""


@dataclass(frozen=True)
class Design:
    """Rows of one structure: ``interval`` is the function that makes the limits, ``n`` the independent units."""

    interval: str
    what: str
    n: str
    trial: Trial
    discrete: bool = False
    """Of shares of few answers and capped values: at least 93 %, since their limits cannot hold 95 % exactly."""
