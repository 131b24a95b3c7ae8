"""Few skewed values: a short form of ``benchmarks/coverage_skewed.py``, and what the wider side depends on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from lm_audit.stats import (
    clustered_mean,
    mean_interval,
    roc_auc,
    share,
    studentised_difference,
    studentised_mean,
    tpr_at_fpr,
)
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
        ("clustered_mean", "8 clusters of 1 to 50, lognormal, SD 1", 0.90),
        ("clustered_mean", "20 clusters of 1 to 50, a tenth at 5, SD 1", 0.91),
        ("share", "50 clusters of 1 to 50, 0.05 yes, correlation 0.6", 0.88),
        ("studentised_difference", "15 against 200, spreads 3 to 1, Student's t of 3", 0.925),
        ("roc_auc", "200 members, 8 controls, shift 2.5, SD 1 to 1", 0.78),
        ("bootstrap_ci", "quantile 0.9 of 8 values, normal", 0.55),
        ("bootstrap_ci", "standard deviation of 25 values, exponential", 0.79),
        ("bootstrap_two_sample", "log of the ratio of spreads of 8 and 50 values, exponential", 0.725),
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
            studentised_difference(values, 0.01 * even, n_resamples=499).difference,
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
    difference = studentised_difference([1.0] * 5 + [2.0, 2.5, 3.0, 3.5], np.arange(9.0), n_resamples=499)
    assert (present(difference.p.value) < 0.05) is (
        not present(difference.difference.low) <= 0 <= present(difference.difference.high)
    )


def test_a_group_that_hides_how_far_its_values_differ_has_no_interval() -> None:
    """Of 8 values of which 70 % are 0 in truth the mean was covered in 84 to 91 %."""
    rng = np.random.default_rng(5)
    others = rng.exponential(size=40)
    two_differ, three_differ = np.r_[np.zeros(6), 0.5, 1.0], np.r_[np.zeros(5), 0.5, 1.0, 2.0]
    for pair in ((two_differ, others), (others, two_differ), (np.zeros(8), others)):
        found = studentised_difference(*pair, n_resamples=499)
        assert found.difference.low is None and found.p.value is None and found.difference.value is not None
        assert "too few values differ" in (found.difference.note or "")
    assert studentised_difference(three_differ, others, n_resamples=499).difference.low is not None
    # Of many controls alike those that were not drawn are too few to matter.
    found = studentised_difference(rng.normal(1, 1, 15), np.zeros(200), n_resamples=499)
    assert found.difference.low is not None and found.p.value is not None
    held = [zero_inflated(8, 200, seed) for seed in range(600)]
    known = [one for one in held if one is not None]
    assert len(known) > 150 and np.mean(known) >= 0.93


def zero_inflated(first: int, second: int, seed: int) -> bool | None:
    """Whether the interval of two groups, zero in 70 %, holds 0; None where there is none."""
    rng = np.random.default_rng([9, seed])
    one, other = ((rng.random(n) < 0.3) * rng.exponential(size=n) for n in (first, second))
    found = studentised_difference(one, other, n_resamples=299, seed=seed).difference
    return None if found.low is None or found.high is None else found.low <= 0 <= found.high


def test_clusters_of_very_unequal_sizes_cover_and_are_no_wider_than_need_be() -> None:
    """Writers as in CrowS-Pairs: the interval was 26 percentage points wide and covered all, a t over writers is 10."""
    sizes = np.array([130, 105, 101, 90, 88, 78, 73, 68, 55, 54, 45, 43, 35, 31, *[23] * 13, *[10] * 16, *[2] * 32])
    rng, labels = np.random.default_rng(6), np.repeat(np.arange(len(sizes)), sizes)
    held, ratios = [], []
    for _ in range(200):
        rates = rng.beta(5, 5, len(sizes))
        answers = (rng.random(len(labels)) < rates[labels]).astype(float)
        found, plain = share(answers, labels), clustered_mean(answers, labels)
        held.append(present(found.low) <= 0.5 <= present(found.high))
        ratios.append((present(found.high) - present(found.low)) / (present(plain.high) - present(plain.low)))
    assert np.mean(held) >= 0.93 and np.median(ratios) < 1.35


def test_few_clusters_that_hold_the_answers_may_be_small_ones_by_chance() -> None:
    """One answer in a hundred, in whole clusters of 1 to 50: 89 % were covered."""
    rng, held = np.random.default_rng(7), []
    for _ in range(500):
        labels = np.repeat(np.arange(50), rng.integers(1, 51, 50))
        rates = rng.beta(0.01 * 2 / 3, 0.99 * 2 / 3, 50)
        found = share((rng.random(len(labels)) < rates[labels]).astype(float), labels)
        held.append(present(found.low) <= 0.01 <= present(found.high))
    assert np.mean(held) >= 0.925


def test_clusters_of_one_answer_are_no_clusters() -> None:
    """They grew by the skewness of the answers, at 6 clusters to twice the width."""
    answers = np.r_[1.0, np.zeros(7)]
    alone, each = share(answers), share(answers, list(range(8)))
    assert (each.low, each.high, each.units, each.fewest) == (alone.low, alone.high, 8, 6)
    assert share(answers[:5], list(range(5))).low is None or share(answers[:5], list(range(5))).units == 5


@pytest.mark.parametrize(("members", "controls", "fpr", "shift"), [(200, 200, "0.01", 1.5), (20, 100, "0.05", 3.0)])
def test_a_threshold_among_tied_scores_may_be_the_next_one(members: int, controls: int, fpr: str, shift: float) -> None:
    """Scores in steps of half a spread: 88 and 93 % were covered."""
    step, rng = 0.5 if fpr == "0.01" else 1.0, np.random.default_rng(4)
    steps = step * np.arange(-20, 30)
    threshold = steps[np.argmax(norm.sf(steps + step / 2) <= float(fpr))]
    truth, held = float(norm.sf(threshold + step / 2 - shift)), []
    for _ in range(300):
        own, others = (step * np.round(rng.normal(at, 1, n) / step) for at, n in ((shift, members), (0.0, controls)))
        found = tpr_at_fpr(own, others, fpr)
        held.append(present(found.low) - 1e-9 <= truth <= present(found.high) + 1e-9)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("freedom", [2, 3])
def test_a_threshold_in_a_heavy_tail_is_covered(freedom: int) -> None:
    """Five of 100 controls allowed: resampled thresholds lie at controls, the true one between or beyond (89 %)."""
    rng, held = np.random.default_rng(6), []
    truth = float(t.sf(t.isf(0.05, freedom) - 2, freedom))
    for _ in range(400):
        found = tpr_at_fpr(2 + rng.standard_t(freedom, 300), rng.standard_t(freedom, 100), 0.05)
        held.append(present(found.low) <= truth <= present(found.high))
    assert np.mean(held) >= 0.935
