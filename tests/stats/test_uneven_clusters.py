"""Intervals over clusters cover where one or two hold most values, and statistics that do not change smoothly."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.stats import bootstrap_clustered, clustered_mean, mean_interval

SIZES = {"one holds 70 %": [77, *[3] * 11], "two hold 90 %": [90, 90, *[2] * 10]}


def drawn(sizes: list[int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values of mean 0, of whose variance clusters have 30 % in common, and their clusters."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return 0.55 * rng.normal(size=len(sizes))[labels] + 0.84 * rng.normal(size=len(labels)), labels


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_mean_of_which_few_clusters_hold_most(sizes: list[int]) -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(100):
        found = mean_interval(*drawn(sizes, rng), n_resamples=99)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    # The bootstrap-t alone: 76 and 86 %.
    assert held >= 92


def test_no_nearer_than_the_robust_t_but_of_even_clusters_as_it_was() -> None:
    values, labels = drawn(SIZES["one holds 70 %"], np.random.default_rng(1))
    found, robust = mean_interval(values, labels, n_resamples=199), clustered_mean(values, labels)
    assert found.low is not None and robust.low is not None and found.high is not None and robust.high is not None
    assert found.low <= robust.low and found.high >= robust.high and "no nearer than CR2's t" in found.method
    values, labels = drawn([5] * 12, np.random.default_rng(1))
    assert "CR2" not in mean_interval(values, labels, n_resamples=199).method


def test_a_median_of_few_clusters() -> None:
    rng, held = np.random.default_rng(4), 0
    for _ in range(200):
        values = rng.normal(size=40)
        found = bootstrap_clustered(values, np.repeat(np.arange(8), 5), np.median, n_resamples=40)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    # By the jackknife alone 175.
    assert held >= 188
