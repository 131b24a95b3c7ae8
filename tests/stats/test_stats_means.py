"""Means with intervals that cover from few values or clusters on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lm_audit.errors import UsageError
from lm_audit.stats import clustered_mean, studentised_mean
from tests.present import present


def even(n: int) -> np.ndarray:
    """Values of which neither tail is the longer one."""
    half = np.abs(np.random.default_rng(0).normal(size=n // 2))
    return np.concatenate([half, -half, np.zeros(n % 2)]) + 0.3


def limits(values: np.ndarray) -> tuple[float, float]:
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return float(values.mean() - half), float(values.mean() + half)


def test_a_cluster_a_value_is_the_t_interval() -> None:
    values = even(9)
    found = clustered_mean(values, list("abcdefghi"))
    assert (found.low, found.high) == pytest.approx(limits(values))
    assert (found.n, found.units, found.fewest) == (9, 9, 6)


def test_equal_clusters_are_the_t_interval_of_their_means() -> None:
    inside = np.random.default_rng(1).normal(size=(7, 5))
    table = inside - inside.mean(axis=1, keepdims=True) + even(7)[:, None]
    found = clustered_mean(table.ravel(), np.repeat(np.arange(7), 5))
    assert (found.low, found.high) == pytest.approx(limits(table.mean(axis=1)))
    assert (found.n, found.units) == (35, 7)


def test_a_cluster_that_outweighs_the_rest_costs_degrees_of_freedom() -> None:
    rng = np.random.default_rng(2)
    even, uneven = np.repeat(np.arange(6), 10), np.repeat(np.arange(6), [50, 2, 2, 2, 2, 2])
    values = rng.normal(size=60)
    widths = [
        present(found.high) - present(found.low)
        for found in (clustered_mean(values, even), clustered_mean(values, uneven))
    ]
    assert widths[1] > widths[0]


def test_what_gives_no_clustered_interval() -> None:
    assert clustered_mean([1.0, 2.0], ["a", "a"]).low is None
    assert "same mean" in (clustered_mean([1.0, 1.0, 1.0], ["a", "b", "c"]).note or "")
    assert clustered_mean([1.0, float("nan")], ["a", "b"]).value is None
    with pytest.raises(UsageError, match="3 labels"):
        clustered_mean([1.0, 2.0], ["a", "b", "c"])


def test_the_studentised_interval_follows_the_skew() -> None:
    values = np.random.default_rng(3).exponential(size=12)
    found, plain = studentised_mean(values, seed=0), limits(values)
    assert present(found.high) - present(found.value) > 1.2 * (present(found.value) - present(found.low))
    assert present(found.high) > plain[1] and present(found.low) == pytest.approx(plain[0])
    assert found == studentised_mean(values, seed=0)
    assert "all values are equal" in (studentised_mean(np.ones(9), seed=0).note or "")
    assert studentised_mean([3.0], seed=0).low is None


@pytest.mark.parametrize(("draw", "truth"), [("normal", 0.0), ("standard_exponential", 1.0)])
def test_the_studentised_interval_covers(draw: str, truth: float) -> None:
    rng = np.random.default_rng(4)
    found = [studentised_mean(getattr(rng, draw)(size=10), seed=k, n_resamples=499) for k in range(400)]
    covered = np.mean([present(e.low) <= truth <= present(e.high) for e in found])
    assert 0.90 <= covered <= 0.98
