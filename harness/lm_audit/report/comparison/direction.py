"""Which way a metric gets worse: values turned so that more is worse, whatever the metric's own direction is."""

from __future__ import annotations

from dataclasses import dataclass

from lm_audit.stats.estimate import Estimate


@dataclass(frozen=True)
class Turn:
    """``worse = sign * (value - origin)``; a sign of 0 stands for a metric without a direction."""

    sign: int
    origin: float = 0.0

    def apply(self, value: float) -> float:
        """How bad ``value`` is, in the metric's unit."""
        return self.sign * (value - self.origin)

    def estimate(self, estimate: Estimate) -> tuple[float | None, float | None, float | None]:
        """Value, low and high, turned; the ends change places where the direction is reversed."""
        value, low, high = (None if x is None else self.apply(x) for x in (estimate.value, estimate.low, estimate.high))
        return (value, high, low) if self.sign < 0 else (value, low, high)


def turn(estimate: Estimate) -> Turn:
    """How ``estimate`` is turned. A target turns by the side on which the value lies: worse is further from it."""
    if estimate.better == "lower":
        return Turn(1)
    if estimate.better == "higher":
        return Turn(-1)
    if estimate.better in (None, "neither"):
        return Turn(0)
    target = float((estimate.better or "").partition(":")[2])
    above = estimate.value is None or estimate.value >= target
    return Turn(1 if above else -1, target)
