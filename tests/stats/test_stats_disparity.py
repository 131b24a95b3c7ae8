"""The disparity of groups chosen as extremes, and differences of shares over the same clusters: levels and edges."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from lm_audit.errors import UsageError
from lm_audit.stats.means.disparity import max_min_disparity, mean_errors
from lm_audit.stats.shares.share_differences import clustered_share_difference
from tests.present import present


def grid(rng: np.random.Generator, groups: int, rows: int, columns: int, means: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Group means plus what templates, pairs and their cells add to each group."""
    noise = rng.normal(0, 0.35, (groups, rows, 1)) + rng.normal(0, 0.35, (groups, 1, columns))
    level: NDArray[np.float64] = np.broadcast_to(np.asarray(means, dtype=np.float64), groups)[:, None, None]
    return level + noise + rng.normal(0, 0.6, (groups, rows, columns))


@pytest.mark.parametrize(("groups", "size"), [(2, 12), (9, 12), (4, 6)])
def test_equal_groups_are_told_apart_in_a_twentieth(groups: int, size: int) -> None:
    """An unadjusted contrast of the extremes excludes 0 in 2, 19 and 47%; 80 runs at 5% exceed 10 once in 400."""
    rng = np.random.default_rng([7, groups, size])
    low = [max_min_disparity(grid(rng, groups, size, size), seed=run).estimate.low for run in range(80)]
    assert np.mean(np.array(low) > 0) <= 0.125


@pytest.mark.parametrize("means", [(0.0, 1.2), (0.0, 0.0, 0.0, 0.9), (0.0, 0.3, 0.6, 0.9)])
def test_a_true_disparity_is_held_and_found(means: tuple[float, ...]) -> None:
    rng = np.random.default_rng(3)
    found = [max_min_disparity(grid(rng, len(means), 12, 12, means), seed=run).estimate for run in range(40)]
    truth = max(means) - min(means)
    assert np.mean([e.low <= truth <= e.high for e in found]) >= 0.85  # type: ignore[operator]
    assert np.mean([e.low > 0 for e in found]) >= 0.8  # type: ignore[operator]


def test_the_test_and_the_interval_never_disagree() -> None:
    rng = np.random.default_rng(5)
    for run in range(40):
        found = max_min_disparity(grid(rng, 3, 8, 8, (0.0, 0.2, 0.4)), seed=run)
        assert found.p_value.value is not None and found.estimate.low is not None
        assert (found.estimate.low > 0) == (found.p_value.value < 0.05)
        assert found.estimate.value == pytest.approx(np.ptp(np.array([found.estimate.value, 0.0])))


def test_errors_have_the_variance_of_the_design() -> None:
    """Against the variance of group means over many grids, known in closed form."""
    rng = np.random.default_rng(11)
    true = 0.35**2 / 10 + 0.35**2 / 10 + 0.6**2 / 100
    spread = []
    for run in range(200):
        errors = mean_errors(grid(rng, 2, 10, 10), 400, run)
        spread.append(np.median(np.abs(errors[:, 0] - errors[:, 1])) / 0.6745 / np.sqrt(2))
    assert np.sqrt(np.mean(np.square(spread))) == pytest.approx(np.sqrt(true), rel=0.15)


def test_degenerate_grids_have_reasons_and_no_interval() -> None:
    few = max_min_disparity(np.random.default_rng(0).normal(size=(3, 5, 12)), seed=0)
    assert few.estimate.value is not None and few.estimate.low is None and "6 x 6 do" in str(few.estimate.note)
    assert few.p_value.value is None
    assert max_min_disparity(np.zeros((1, 8, 8)), seed=0).estimate.value is None
    assert max_min_disparity(np.full((2, 8, 8), np.nan), seed=0).estimate.value is None
    equal = max_min_disparity(np.ones((3, 8, 8)), seed=0)
    assert equal.estimate.value == 0 and equal.p_value.value == 1


def test_no_answer_of_either_kind_leaves_a_wide_interval() -> None:
    """Eight requests in three draws without one refusal: eight answers, not twenty-four."""
    clusters = np.tile(np.repeat(np.arange(8), 3), 2)
    found = clustered_share_difference(np.zeros(48), np.repeat([True, False], 24), clusters, scale=100)
    limit = 100 * (1 - 0.025 ** (1 / 8))
    assert (found.value, found.units) == (0.0, 8)
    assert found.low == pytest.approx(-limit) and found.high == pytest.approx(limit)


@pytest.mark.parametrize(("icc", "shares"), [(0.8, (0.3, 0.1)), (0.5, (0.5, 0.5)), (0.8, (0.7, 0.2))])
def test_eight_requests_in_three_draws_cover(icc: float, shares: tuple[float, float]) -> None:
    from scipy.stats import norm

    rng, held = np.random.default_rng(17), []
    clusters = np.tile(np.repeat(np.arange(8), 3), 2)
    for _ in range(150):
        own = np.repeat(rng.normal(size=(2, 8)), 3, axis=1)
        latent = np.sqrt(icc) * own + np.sqrt(1 - icc) * rng.normal(size=(2, 24))
        answers = (latent < norm.ppf(np.array(shares))[:, None]).astype(float).ravel()
        found = clustered_share_difference(answers, np.repeat([True, False], 24), clusters)
        held.append(found.low <= shares[0] - shares[1] <= found.high)  # type: ignore[operator]
    assert np.mean(held) >= 0.9


def test_too_few_clusters_and_empty_sides_give_reasons() -> None:
    side = np.array([True, False] * 4)
    few = clustered_share_difference(np.ones(8), side, [0, 0, 1, 1, 2, 2, 3, 3])
    assert few.value == 0 and few.low is None and "6 do" in str(few.note)
    assert clustered_share_difference(np.ones(8), np.ones(8, bool), range(8)).value is None
    with pytest.raises(UsageError, match="has 8 elements"):
        clustered_share_difference(np.ones(8), side, [0, 1])


@pytest.mark.parametrize("shape", [(4, 4, 10), (2, 2, 2), (9, 3, 12), (4, 12, 12)])
def test_chance_is_of_the_size_of_what_equal_groups_show(shape: tuple[int, int, int]) -> None:
    """Errors of few rows have no mean: their average over draws was 34,430 nats for 4 x 10 cells."""
    rng = np.random.default_rng(0)
    shown, chance = [], []
    for seed in range(40):
        cells = rng.normal(size=shape) + rng.normal(size=(shape[0], shape[1], 1))
        found = max_min_disparity(cells, seed=seed)
        shown.append(present(found.estimate.value))
        chance.append(present(found.chance))
    assert 0.5 < np.median(chance) / np.median(shown) < 2
    assert max(chance) < 20 * max(shown)


@pytest.mark.parametrize("groups", [2, 5])
def test_a_table_that_is_interaction_alone_has_an_interval(groups: int) -> None:
    """Rows and columns cancel out, so that the spread of either rests on next to nothing."""
    rng, ups = np.random.default_rng(0), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    table = rng.normal(size=(groups, 1, 1)) * np.outer(ups, ups) + 1e-4 * rng.normal(size=(groups, 6, 6))
    found = max_min_disparity(table, seed=0)
    assert found.estimate.low is not None and found.estimate.high is not None and found.p_value.value is not None
    assert found.estimate.high < 0.01 and np.isfinite(mean_errors(table, 2000, 0)).all()
