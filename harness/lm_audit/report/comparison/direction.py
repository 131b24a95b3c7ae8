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
    return turned(estimate, estimate.better)


def turned(estimate: Estimate, better: str | None) -> Turn:
    """How ``estimate`` is turned by the direction ``better``, whatever its own is."""
    if better == "lower":
        return Turn(1)
    if better == "higher":
        return Turn(-1)
    if better in (None, "neither"):
        return Turn(0)
    target = float((better or "").partition(":")[2])
    above = estimate.value is None or estimate.value >= target
    return Turn(1 if above else -1, target)


def directions(a: Estimate, b: Estimate) -> tuple[str, ...]:
    """The ways in which the metric gets better by either of two runs: none where neither way is better, two where they
    contradict each other. What only one of them says holds for both."""
    return tuple(dict.fromkeys(better for better in (a.better, b.better) if better not in (None, "neither")))


def reversed_about(a: Estimate, b: Estimate) -> float | None:
    """The target from which both runs' intervals lie apart, on opposite sides of it; ``None`` where there is none.

    As far from the target as before on its other side is no better and no worse, and another finding all the same.
    """
    ways = directions(a, b)
    if len(ways) != 1 or not ways[0].startswith("target:"):
        return None
    target = float(ways[0].partition(":")[2])
    sides = [_side(estimate, target) for estimate in (a, b)]
    return target if sides[0] * sides[1] < 0 else None


def _side(estimate: Estimate, target: float) -> int:
    """1 where the whole interval lies above ``target``, -1 below; 0 where it does not, or there is none."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return 0
    return 1 if estimate.low > target else -1 if estimate.high < target else 0


def contradictory(a: Estimate, b: Estimate) -> bool:
    """Whether both runs say which way the metric gets worse, and not the same."""
    return None not in (a.better, b.better) and a.better != b.better


def worse_by_either(a: Estimate, b: Estimate) -> bool | None:
    """Whether ``b`` is worse than ``a`` by the direction of either run; ``None`` where neither has one."""
    assert a.value is not None and b.value is not None
    ways = directions(a, b)
    if not ways:
        return None
    return any(turned(b, way).apply(b.value) > turned(a, way).apply(a.value) for way in ways)
