"""The exact test of a paired change of what is no plain mean, against all exchanges counted here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.units import RowTable

N = 9
PATTERNS = (np.arange(2**N)[:, None] >> np.arange(N) & 1).astype(bool)
"""Which items change places; the first row none."""

FIRST = np.arange(N) < 5
WEIGHTS = np.array([1.0, 2, 1, 3, 1, 2, 1, 1, 4])


def change(a: np.ndarray, b: np.ndarray, source: MetricSource, **options: Any) -> Change:
    columns = [{"item": f"i{k}", "w": float(WEIGHTS[k]), "g": "x" if FIRST[k] else "y"} for k in range(N)]
    runs = [[{**row, "v": float(v)} for row, v in zip(columns, values, strict=True)] for values in (a, b)]
    found = change_between(source, *map(RowTable, runs), **options)
    assert isinstance(found, Change) and found.basis == "paired"
    return found


def counted(statistic: Callable[[np.ndarray, np.ndarray], float], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What the statistic makes of each exchange of the two runs, as observed first."""
    return np.array([statistic(np.where(p, b, a), np.where(p, a, b)) for p in PATTERNS])


def share(sizes: np.ndarray, size: float) -> float:
    return float((np.abs(sizes) >= abs(size) * (1 - 1e-6)).mean())


def runs(seed: int, effect: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=N)
    return a, a + rng.normal(effect, 0.5, N)


@pytest.mark.parametrize("seed", range(4))
def test_a_weighted_mean(seed: int) -> None:
    a, b = runs(seed)
    changes = counted(lambda one, two: float(np.average(two - one, weights=WEIGHTS)), a, b)
    found = change(a, b, MetricSource.mean("v", options={"weight": "w"}))
    assert found.difference.value == pytest.approx(changes[0])
    assert (found.p, found.floor) == (share(changes, changes[0]), share(changes, np.abs(changes).max()))


@pytest.mark.parametrize("seed", range(4))
def test_a_median_moves_in_few_steps_and_its_floor_tells(seed: int) -> None:
    a, b = runs(seed)
    changes = counted(lambda one, two: float(np.median(two) - np.median(one)), a, b)
    found = change(a, b, MetricSource("median", "v"))
    assert found.difference.value == pytest.approx(changes[0])
    assert (found.p, found.floor) == (share(changes, changes[0]), share(changes, np.abs(changes).max()))
    assert found.floor > 2 / 2**N


@pytest.mark.parametrize("target", [0.5, -3.0])
def test_a_median_with_a_target(target: float) -> None:
    a, b = runs(5)
    changes = counted(lambda one, two: abs(float(np.median(two)) - target) - abs(float(np.median(one)) - target), a, b)
    assert change(a, b, MetricSource("median", "v"), target=target).p == share(changes, changes[0])


@pytest.mark.parametrize("seed", range(4))
def test_a_difference_of_groups_is_held_over_its_own_error(seed: int) -> None:
    a, b = runs(seed)
    b = np.where(FIRST, b + 1.0, b)

    def welch(one: np.ndarray, two: np.ndarray) -> float:
        x, y = (two - one)[FIRST], (two - one)[~FIRST]
        return float((x.mean() - y.mean()) / np.sqrt(x.var(ddof=1) / 5 + y.var(ddof=1) / 4))

    sizes = counted(welch, a, b)
    options = {"first": {"g": "x"}, "second": {"g": "y"}}
    found = change(a, b, MetricSource("difference", "v", options=options))
    moved = (b - a)[FIRST].mean() - (b - a)[~FIRST].mean()
    assert found.difference.value == pytest.approx(moved)
    assert (found.p, found.floor) == (share(sizes, sizes[0]), share(sizes, np.abs(sizes).max()))


def test_where_exchanges_and_t_disagree_the_interval_goes_with_the_exchanges() -> None:
    """Nine changes of a mean: the t interval leaves 0 out, and too many exchanges change as much, or the other way."""
    rng, seen = np.random.default_rng(1), set()
    for _ in range(3000):
        a = rng.normal(size=N)
        b = a + rng.normal(0.55, 1, N) ** 3
        changes = counted(lambda one, two: float((two - one).mean()), a, b)
        exact, plain = share(changes, changes[0]), ttest_rel(b, a).confidence_interval(0.95)
        if (exact <= 0.05) is not bool(plain.low > 0 or plain.high < 0):
            found = change(a, b, MetricSource.mean("v"))
            low, high = found.difference.low, found.difference.high
            assert found.p == exact and low is not None and high is not None
            assert (exact <= 0.05) is (low > 0 or high < 0)
            seen.add(exact <= 0.05)
        if len(seen) == 2:
            break
    assert seen == {True, False}
