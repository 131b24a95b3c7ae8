"""The one interval of shares: exact limits at 0 and n, clusters as the independent answers, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from lm_audit.stats import clopper_pearson, share, share_limits
from lm_audit.stats.means.cluster_robust import cluster_deviations, cluster_variance
from lm_audit.stats.means.skewed import growth, skewness


@pytest.mark.parametrize("n", [1, 2, 5, 8, 12, 24, 200])
def test_none_of_n_has_the_exact_upper_limit_and_all_of_n_the_lower(n: int) -> None:
    none, all_of_them = share(np.zeros(n)), share(np.ones(n))
    assert none.value == 0 and none.low == 0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / n), rel=1e-12)
    assert all_of_them.low == pytest.approx(0.025 ** (1 / n), rel=1e-12) and all_of_them.high == 1.0
    percent = share(np.zeros(n), scale=100)
    assert percent.unit == "%" and percent.high == pytest.approx(100 * (1 - 0.025 ** (1 / n)))


@pytest.mark.parametrize(("k", "n"), [(0, 9), (3, 9), (9, 9), (1, 2), (50, 200)])
def test_whole_answers_have_the_limits_of_scipy(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(0.95, method="exact")
    found, exact = share([1.0] * k + [0.0] * (n - k)), clopper_pearson(k, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.low, found.high) == (exact.low, exact.high)
    assert share_limits(k / n, n) == pytest.approx((expected.low, expected.high))


def test_clusters_that_agree_are_the_answers() -> None:
    found = share(np.zeros(120), [i % 10 for i in range(120)], scale=100)
    assert found.high == pytest.approx(100 * (1 - 0.025**0.1))
    assert (found.n, found.units) == (120, 10)
    halves = share([0.0, 1.0] * 10, [i // 2 for i in range(20)])
    assert halves.low is not None and halves.high is not None
    assert halves.low < 0.25 and halves.high > 0.75
    few = share([0.0, 0.0, 1.0, 1.0, 0.0, 1.0], [0, 0, 1, 1, 2, 2])
    assert few.value == 0.5 and few.low is None and "3 clusters give no interval" in (few.note or "")


def test_answers_that_hang_together_count_for_less() -> None:
    rng = np.random.default_rng(3)
    chances = rng.beta(1, 1, 20)
    clusters = np.repeat(np.arange(20), 10)
    values = (rng.random(200) < chances[clusters]).astype(float)
    alone, together = share(values), share(values, clusters)
    widths = [(e.high or 0) - (e.low or 0) for e in (alone, together)]
    assert widths[1] > 1.5 * widths[0]
    apart = share(values, np.arange(200))
    assert (apart.high or 0) - (apart.low or 0) == pytest.approx(widths[0], rel=0.05)


def test_what_is_no_share_has_no_value() -> None:
    assert share([0.0, 1.5]).value is None
    assert share([]).value is None
    assert share([0.0, float("nan")]).value is None


@pytest.mark.parametrize(("clusters", "size", "p", "rho"), [(6, 5, 0.2, 0.4), (12, 10, 0.2, 0.1), (30, 5, 0.05, 0.0)])
def test_it_covers(clusters: int, size: int, p: float, rho: float) -> None:
    """95% nominal; 400 draws are between 93 and 100% at a true 95 to 97%."""
    rng = np.random.default_rng(7)
    labels = np.repeat(np.arange(clusters), size)
    hits = 0
    for _ in range(400):
        chance = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, clusters) if rho else np.full(clusters, p)
        found = share((rng.random(clusters * size) < chance[labels]).astype(float), labels)
        hits += found.low is not None and found.low <= p <= (found.high or 0)
    assert hits / 400 >= 0.93


def test_clusters_of_unequal_sizes_are_fewer_in_effect() -> None:
    """What clusters add to the variance counts by as much more as they are fewer; below six all of it does. On the side
    of the longer tail it counts by more again."""
    rng = np.random.default_rng(4)
    for sizes in ([9, 3, 3, 3, 3, 3, 3, 3, 3], [30, 4, 4, 3, 3, 2, 2]):
        labels = np.repeat(range(len(sizes)), sizes)
        values = (rng.random(len(labels)) < rng.beta(0.5, 0.5, len(sizes))[labels]).astype(float)
        mean, n = values.mean(), len(values)
        variance, freedom = cluster_variance(values, labels)
        # The t's half width is that of the effective answers, whose own t has n - 1 degrees of freedom.
        variance *= (t.ppf(0.975, freedom) / t.ppf(0.975, n - 1)) ** 2
        even = sum(sizes) ** 2 / sum(k * k for k in sizes) / len(sizes)
        alone = mean * (1 - mean) / n
        many = even * len(sizes) >= 6
        further = max(0.0, variance - alone) / even if many else max(alone, variance) / even - alone
        found, sides = share(values, labels), growth(skewness(cluster_deviations(values, labels)), len(sizes))
        expected = [share_limits(mean, mean * (1 - mean) / (alone + side * further)) for side in sides]
        assert (found.low, found.high) == pytest.approx((expected[0][0], expected[1][1]))
    none = share(np.zeros(48), np.repeat(range(7), [30, 4, 4, 3, 3, 2, 2]))
    assert none.high == pytest.approx(1 - 0.025 ** (958 / 48**2))
