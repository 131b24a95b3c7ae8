"""Bounded means, exposures and differences of unequal groups: known limits, and what a quick simulation must show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from lm_audit.errors import UsageError
from lm_audit.stats import bounded_mean, clopper_pearson, even_rank_bits, mean_exposure, roc_auc, studentised_difference
from tests.present import present


@pytest.mark.parametrize(("k", "n"), [(0, 8), (0, 15), (3, 20), (20, 20)])
def test_a_mean_of_zeros_and_ones_has_the_exact_interval(k: int, n: int) -> None:
    found, exact = bounded_mean([1.0] * k + [0.0] * (n - k)), clopper_pearson(k, n)
    assert (found.value, found.low, found.high) == (exact.value, exact.low, exact.high)


def test_equal_values_still_leave_room_on_both_sides() -> None:
    found = bounded_mean([0.25] * 12)
    assert present(found.low) < 0.25 < present(found.high)


def test_few_or_impossible_values_have_no_interval() -> None:
    assert bounded_mean([0.5] * 7).low is None
    assert "8 do" in present(bounded_mean([0.5] * 7).note)
    assert bounded_mean([0.5, 1.5] * 5).value is None


def test_a_weighted_mean_of_bounded_values_allows_for_a_heavy_one_not_yet_seen() -> None:
    values, equal = [0.25, 0.5, 0.0, 1.0, 0.0, 0.25, 0.75, 0.0, 0.5], [2.0] * 9
    plain, same = bounded_mean(values), bounded_mean(values, weights=equal)
    assert (same.value, same.low, same.high) == pytest.approx((plain.value, plain.low, plain.high))
    heavy = bounded_mean([0.0] * 9, weights=[1.0] * 8 + [8.0])
    light = bounded_mean([0.0] * 9)
    assert heavy.value == 0 and heavy.low == 0 and present(heavy.high) > present(light.high)
    for weights in ([1.0] * 8, [1.0] * 8 + [0.0], [1.0] * 8 + [np.nan]):
        with pytest.raises(UsageError, match="weights must be 9 finite numbers above 0"):
            bounded_mean(values, weights=weights)


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5])
def test_shares_of_a_few_draws_are_covered(chance: float) -> None:
    """Each of 15 canaries has its own rate (half of them none) and 4 draws."""
    rng, hit = np.random.default_rng(0), 0
    for run in range(300):
        rates = np.where(rng.random(15) < 0.5, 0.0, min(1.0, 2 * chance))
        found = bounded_mean(rng.binomial(4, rates) / 4, n_resamples=499, seed=run)
        hit += present(found.low) <= chance <= present(found.high)
    assert hit / 300 >= 0.93


def test_exposure_at_the_cap_has_a_lower_limit() -> None:
    """All 15 canaries before all 200 twins: still one in five canaries of the kind may not be (0.025 ** (1 / 15)).

    Nor are they before all secrets: a Beta(1, 200) share lies before the first of 200 twins, half of it before these.
    """
    found = mean_exposure(np.zeros(15), np.ones(200))
    assert found.value == pytest.approx(np.log2(201))
    assert found.high == pytest.approx(found.value)
    before, counts = beta.ppf(0.975, 1, 200) / 2, np.arange(201)
    bits = np.log2(201) - binom.pmf(counts, 200, before) @ np.log2(1 + counts)
    lost = np.hypot(np.log2(201) * (1 - 0.025 ** (1 / 15)), np.log2(201) - bits)
    assert found.low == pytest.approx(np.log2(201) - lost, abs=0.03)
    assert "cap it at 7.65" in present(found.note)


def test_few_canaries_or_few_twins_give_no_interval() -> None:
    for canaries, twins, told in (
        (7, 200, "7 canaries give"),
        (40, 7, "7 references give"),
        (3, 2, "2 references give"),
    ):
        found = mean_exposure(np.linspace(0, 1, canaries), np.linspace(0, 1, twins))
        assert found.value is not None and found.low is None and told in present(found.note)
    assert mean_exposure(np.linspace(0, 1, 8), np.linspace(0, 1, 8)).low is not None


@pytest.mark.parametrize("twins", [1, 8, 12, 60, 200])
def test_what_exposure_is_by_chance_follows_from_how_many_twins_there_are(twins: int) -> None:
    """Secrets that are like their twins; log2(e) = 1.44, which it is among very many, lies 0.94 to 0.03 above it."""
    rng = np.random.default_rng(5)
    found = [mean_exposure(rng.normal(size=50), rng.normal(size=twins), n_resamples=9) for _ in range(400)]
    assert {estimate.chance for estimate in found} == {even_rank_bits(twins + 1)}
    values = np.array([estimate.value for estimate in found])
    assert abs(values.mean() - even_rank_bits(twins + 1)) < 4 * values.std() / 20
    assert even_rank_bits(10**7) == pytest.approx(1 / np.log(2), abs=1e-5)


@pytest.mark.parametrize(
    ("canaries", "twins", "shift", "spread"),
    [
        (8, 200, 3.0, 0.5),
        (15, 200, 1.5, 1.0),
        (50, 200, 3.0, 0.5),
        (200, 50, 2.5, 1.0),
        (100, 100, 2.0, 1.0),
        (8, 8, 1.0, 1.0),
    ],
)
def test_exposure_is_covered_for_new_canaries_and_new_twins(
    canaries: int, twins: int, shift: float, spread: float
) -> None:
    """50 near the cap: resampling the canaries alone covers 80% there, since one twin moves all of them.

    200 before most of 50 twins: a jackknife of the twins covers 88%, since nothing is seen before the first of them.
    """
    rng = np.random.default_rng(1)
    found = [
        mean_exposure(-rng.normal(shift, spread, canaries), -rng.normal(size=twins), n_resamples=399)
        for _ in range(300)
    ]
    truth = np.mean([estimate.value for estimate in found])
    assert np.mean([present(estimate.low) <= truth <= present(estimate.high) for estimate in found]) >= 0.93


def test_p_and_interval_of_a_difference_say_the_same() -> None:
    rng, small = np.random.default_rng(2), 0
    for run in range(200):
        found = studentised_difference(rng.normal(0.5, 3, 15), rng.normal(size=60), n_resamples=499, seed=run)
        excludes = present(found.difference.low) > 0 or present(found.difference.high) < 0
        assert excludes == (present(found.p.value) < 0.05)
        small += excludes
    assert 0 < small < 200


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_unequal_spreads_do_not_make_differences(ratio: float) -> None:
    rng, false = np.random.default_rng(3), 0
    for run in range(600):
        found = studentised_difference(rng.normal(0, ratio, 15), rng.normal(size=200), n_resamples=399, seed=run)
        false += present(found.p.value) < 0.05
    assert false / 600 <= 0.07  # 5.5% and two standard errors of 600 runs


def test_a_difference_does_not_hang_on_unit_or_origin() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(1, 2, 12), rng.normal(size=40)
    found = studentised_difference(x, y, n_resamples=999)
    scaled = studentised_difference(1e200 * x, 1e200 * y, n_resamples=999)
    assert scaled.difference.low == pytest.approx(1e200 * present(found.difference.low))
    moved = studentised_difference(x + 100, y + 100, n_resamples=999)
    assert moved.p.value == pytest.approx(found.p.value, abs=0.003)
    turned = studentised_difference(-x, -y, n_resamples=999)
    assert turned.difference.low == pytest.approx(-present(found.difference.high))


def test_groups_without_spread_or_size_have_no_test() -> None:
    constant = studentised_difference([1.0] * 10, [0.0] * 10)
    assert (constant.difference.value, constant.difference.low, constant.p.value) == (1.0, None, None)
    few = studentised_difference([1.0, 2.0], list(range(30)))
    assert few.difference.low is None
    assert "at least 8" in present(few.p.note)
    rare = studentised_difference([1.0] + [0.0] * 14, [0.0] * 200)
    assert (rare.difference.low, rare.p.value) == (None, None)
    assert studentised_difference([], [1.0]).difference.value is None


@pytest.mark.parametrize("shift", [0.0, 1.8])
def test_average_precision_is_covered_and_rarely_above_chance(shift: float) -> None:
    """15 members against 200 twins; the printed chance was the share of members, 0.070, and 17.5% lay above it."""
    from lm_audit.stats.ranking.average_precision import pr_interval

    rng = np.random.default_rng(5)
    found = [
        pr_interval(rng.normal(shift, 1, 15), rng.normal(size=200), n_resamples=199, seed=run) for run in range(250)
    ]
    truth = np.mean([estimate.value for estimate in found])
    assert np.mean([present(estimate.low) <= truth <= present(estimate.high) for estimate in found]) >= 0.92
    if not shift:
        assert found[0].chance == pytest.approx(0.091, abs=5e-4)
        assert truth == pytest.approx(found[0].chance, abs=0.01)
        assert np.mean([present(estimate.low) > present(found[0].chance) for estimate in found]) <= 0.03
    assert pr_interval([1.0] * 14, list(range(50)), seed=0).low is None


def test_the_side_towards_the_long_tail_reaches_further_the_more_skewed_few_values_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lm_audit.stats.means import skewed

    values = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.4, 0.3, 4.0])
    others = np.random.default_rng(0).normal(0, 0.01, 200)
    skewness = float(((values - values.mean()) ** 3).mean() / values.std() ** 3)
    grown = studentised_difference(values, others, seed=1).difference
    mirrored = studentised_difference(-values, -others, seed=1).difference
    monkeypatch.setattr(skewed, "SKEWED", 0.0)
    plain = studentised_difference(values, others, seed=1).difference
    assert grown.low == plain.low and grown.value == plain.value
    reach = (grown.high - grown.value) / (plain.high - plain.value)  # type: ignore[operator]
    assert reach == pytest.approx(1 + 15 / 8 * skewness, rel=0.01)
    assert (mirrored.low, mirrored.high) == pytest.approx((-grown.high, -grown.low), rel=0.05)  # type: ignore[operator]


def test_values_without_skewness_keep_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_audit.stats.means import skewed

    values, others = [-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0], np.linspace(-1, 1, 51)
    now = studentised_difference(values, others, seed=3).difference
    monkeypatch.setattr(skewed, "SKEWED", 0.0)
    before = studentised_difference(values, others, seed=3).difference
    assert (now.low, now.high) == pytest.approx((before.low, before.high), rel=1e-9)


@pytest.mark.parametrize(("members", "twins", "shift"), [(15, 15, 2.0), (24, 24, 3.0)])
def test_average_precision_is_covered_near_one(members: int, twins: int, shift: float) -> None:
    """Resamples show 1 too often there: the truth lay below the limits in 15 and 21 of 100 samples."""
    from lm_audit.stats.ranking.average_precision import pr_interval
    from lm_audit.stats.ranking.scores import average_precision_of

    rng = np.random.default_rng(7)
    pairs = [(rng.normal(shift, 1, members), rng.normal(size=twins)) for _ in range(2000)]
    truth = np.mean([average_precision_of(*pair) for pair in pairs])
    found = [pr_interval(*pair, n_resamples=99, seed=run) for run, pair in enumerate(pairs[:200])]
    assert np.mean([present(one.low) <= truth <= present(one.high) for one in found]) >= 0.93


def test_average_precision_goes_with_the_area() -> None:
    """Groups that are wholly apart have a lower limit, and where the AUC may be 0.5 the precision may be chance."""
    from lm_audit.stats.ranking.average_precision import pr_interval

    apart = pr_interval(np.arange(15.0) + 100, np.arange(200.0) / 10, n_resamples=99, seed=0)
    assert present(apart.value) == 1 == present(apart.high) and present(apart.low) == pytest.approx(0.025 ** (1 / 15))
    behind = np.r_[np.full(14, -1.0), 0.5] - np.arange(15) / 100
    level = pr_interval(behind, np.linspace(-2, 2, 200), n_resamples=99, seed=0)
    area = roc_auc(behind, np.linspace(-2, 2, 200))
    holds = present(area.low) <= 0.5 <= present(area.high)
    assert not holds or present(level.low) <= present(level.chance) <= present(level.high)
    scaled = pr_interval(np.exp(3 * behind), np.exp(3 * np.linspace(-2, 2, 200)), n_resamples=99, seed=0)
    assert scaled.low == pytest.approx(level.low) and scaled.high == pytest.approx(level.high)
