"""Few skewed values: a short form of ``benchmarks/coverage_skewed.py``, and what the wider side depends on."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.stats import clustered_mean, mean_interval, roc_auc, share, studentised_difference, studentised_mean
from lm_audit.stats.means.skewed import growth, skewness
from tests.benchmark_script import benchmark_script
from tests.present import present

simulation = benchmark_script("coverage_skewed")


@pytest.mark.parametrize(
    ("method", "setting", "before"),
    [
        ("mean_interval", "10 values, lognormal, SD 1", 0.88),
        ("mean_interval", "40 values, lognormal, SD 1.5", 0.84),
        ("studentised_mean", "10 values, lognormal, SD 1", 0.91),
        ("clustered_mean", "10 clusters of 5, lognormal, SD 1", 0.86),
        ("clustered_mean", "20 clusters of 1 to 50, lognormal, SD 1", 0.86),
        ("share", "50 clusters of 1 to 50, 0.05 yes, correlation 0.6", 0.88),
        ("studentised_difference", "15 against 200, spreads 3 to 1, Student's t of 3", 0.925),
        ("roc_auc", "200 members, 8 controls, shift 2.5, SD 1 to 1", 0.78),
    ],
)
def test_the_longer_tail_is_covered(method: str, setting: str, before: float) -> None:
    """Each at least 93 % in the full table; ``before`` the longer side reached further, each had so many."""
    design = next(line for line in simulation.designs() if (line.method, line.setting) == (method, setting))
    rng, held = np.random.default_rng(8), []
    for seed in range(400):
        found, truth = design.trial(rng, seed)
        held.append(present(found.low) <= truth <= present(found.high))
    assert np.mean(held) >= max(0.915, before + 0.01)


def test_the_side_of_the_longer_tail_grows_and_the_other_stays() -> None:
    even, skewed = np.linspace(-1, 1, 12), np.r_[np.linspace(0, 1, 11), 6.0]
    assert skewness(even) == pytest.approx(0, abs=1e-12) and growth(0.0, 12) == (1.0, 1.0)
    assert skewness(np.full(5, 2.0)) == 0
    assert growth(2.0, 15) == (1.0, 3.0) and growth(-2.0, 15) == (3.0, 1.0)
    assert growth(1.0, 24, spared=2.0) == (1.0, 1.0)
    for values, sign in ((skewed, 1), (-skewed, -1)):
        for found in (
            mean_interval(values, n_resamples=499),
            studentised_mean(values, n_resamples=499),
            clustered_mean(values, range(12)),
            studentised_difference(values, np.zeros(12), n_resamples=499).difference,
        ):
            up, down = present(found.high) - present(found.value), present(found.value) - present(found.low)
            assert sign * (up - down) > 0.2 * (up + down)
    balanced = clustered_mean(even, range(12))
    assert present(balanced.high) + present(balanced.low) == pytest.approx(0, abs=1e-12)


def test_an_auc_knows_no_sides() -> None:
    """Members and controls exchanged, scores turned round: the same area and the same limits."""
    rng = np.random.default_rng(1)
    members, controls = rng.normal(2.5, 1, 60), rng.normal(size=9)
    one, other = roc_auc(members, controls), roc_auc(-controls, -members)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_a_share_of_clusters_without_a_tail_is_as_it_was() -> None:
    labels = np.repeat(np.arange(10), 4)
    values = np.tile([1.0, 0.0], 20)
    values[:4], values[4:8] = 1.0, 0.0
    found = share(values, labels)
    assert present(found.high) - 0.5 == pytest.approx(0.5 - present(found.low))
    difference = studentised_difference([1.0] * 8 + [2.0], np.arange(9.0), n_resamples=499)
    assert (present(difference.p.value) < 0.05) is (
        not present(difference.difference.low) <= 0 <= present(difference.difference.high)
    )
