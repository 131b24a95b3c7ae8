"""The grid's axes: prompt lengths in tokens and needle depths in percent."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, get_args

from lm_audit.errors import UsageError

DepthStrategy = Literal["uniform", "inclusive", "open", "random"]
STRATEGIES: tuple[str, ...] = get_args(DepthStrategy)
RANDOM_DEPTHS = 101
"""Depths 0, 1, ..., 100 from which ``random`` draws."""

FINEST = 10_000
"""The most depths that hundredths of a percent still tell apart."""


def length_sequence(target: int, interval: int, start: int | None = None) -> list[int]:
    """Lengths start, start + interval, ... up to ``target``, in tokens; ``start`` defaults to ``interval``.

    Empty where start > target. The target itself is among them only where it is whole intervals from the start.
    Raises ``UsageError`` for an interval below 1.
    """
    first = interval if start is None else start
    if interval < 1:
        raise UsageError(f"length interval is {interval}; expected 1 token or more")
    return list(range(first, target + 1, interval))


def depth_sequence(n: int, strategy: str = "uniform", *, seed: int = 0) -> list[float]:
    """``n`` ascending depths in percent of the haystack.

    ``uniform``: i * 100 / n, i = 1..n (never 0, always 100). ``inclusive``: from 0 to 100 in equal steps, 50 alone.
    ``open``: (i - 0.5) * 100 / n. ``random``: drawn from 0, 1, ..., 100 without replacement by ``seed``.
    Raises ``UsageError`` for n < 1, more random depths than the 101 there are, and an unknown strategy.
    """
    if n < 1:
        raise UsageError(f"number of depths is {n}; expected 1 or more")
    if strategy == "random":
        return _random_depths(n, seed)
    if strategy not in _RULES:
        raise UsageError(f"depth strategy {strategy!r} is unknown; expected one of {', '.join(STRATEGIES)}")
    if n > FINEST:
        raise UsageError(
            f"{n} depths are finer than hundredths of a percent, which name them; expected at most {FINEST}"
        )
    return _RULES[strategy](n)


def spread_depths(depth: float, n: int) -> list[float]:
    """Depths of ``n`` needles in one prompt: the first at ``depth``, the others (100 - depth) / n further each.

    The rule of gkamradt's multi-needle test.
    """
    return [depth + i * (100 - depth) / n for i in range(n)]


def basis_points(depth: float) -> int:
    """A depth in percent as whole hundredths of a percent, which name files and cases."""
    return round(depth * 100)


def _random_depths(n: int, seed: int) -> list[float]:
    if n > RANDOM_DEPTHS:
        raise UsageError(
            f"{n} random depths were asked for, but there are only {RANDOM_DEPTHS} (0 to 100 in steps of 1)"
        )
    return [float(depth) for depth in sorted(random.Random(seed).sample(range(RANDOM_DEPTHS), n))]


_RULES: dict[str, Callable[[int], list[float]]] = {
    "uniform": lambda n: [i * 100 / n for i in range(1, n + 1)],
    "inclusive": lambda n: [i * 100 / (n - 1) for i in range(n)] if n > 1 else [50.0],
    "open": lambda n: [(i - 0.5) * 100 / n for i in range(1, n + 1)],
}
