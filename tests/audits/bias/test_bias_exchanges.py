"""The right test that the grid's tests are held against, and what counts as unlike it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from lm_audit.audits.bias.grid.controls import exchanges
from lm_audit.audits.bias.grid.controls.exchanges import LIMITS, TwoWay, shares, unlike_right_ones
from lm_audit.stats import crossed_contrast


def drawn(seed: int, templates: float = 0.5, pairs: float = 0.5, rest: float = 0.8) -> np.ndarray:
    """Differences of two sides whose names mean nothing."""
    rng = np.random.default_rng(seed)
    by_row, by_column = templates * rng.normal(size=(6, 1)), pairs * rng.normal(size=(1, 6))
    return np.asarray(by_row + by_column + rest * rng.normal(size=(6, 6)))


@pytest.mark.parametrize("turned", [False, True])
def test_where_templates_alone_differ_the_right_test_is_the_t_test_of_their_means(turned: bool) -> None:
    means = np.random.default_rng(0).normal(0.4, 1, 8)
    table = np.repeat(means[:, None], 6, axis=1)
    found, known = TwoWay.of(table.T if turned else table), ttest_1samp(means, 0)
    assert found.p == pytest.approx(known.pvalue)
    interval = known.confidence_interval(0.95)
    assert found.half == pytest.approx((interval.high - interval.low) / 2)


@pytest.mark.parametrize("spread", [(0.5, 0.5, 0.8), (1.0, 0.0, 0.1), (0.0, 0.7, 0.3)])
def test_the_right_test_keeps_its_level(spread: tuple[float, float, float]) -> None:
    n, found = 1500, np.array([TwoWay.of(drawn(seed, *spread)).p for seed in range(1500)])
    for level in (0.01, 0.05, 0.2):
        assert (found < level).sum() <= binom.isf(1e-4, n, level)
    assert (found < 0.2).sum() >= binom.isf(1 - 1e-4, n, 0.15)


@pytest.mark.parametrize("spread", [(0.5, 0.5, 0.8), (1.0, 0.0, 0.1), (0.0, 0.7, 0.3), (0.0, 0.0, 1.0)])
def test_the_tests_of_the_grid_say_what_a_right_one_does(spread: tuple[float, float, float]) -> None:
    for seed in range(3):
        assert unlike_right_ones(drawn(seed, *spread), seed) == []
    assert {name for name, _ in shares(drawn(3, *spread), 3)} == LIMITS.keys()


def test_cells_all_alike_are_held_against_nothing() -> None:
    assert unlike_right_ones(np.zeros((6, 6)), 0) == []


@pytest.mark.parametrize("p", [None, 0.3, 1.0])
def test_a_test_that_says_the_same_of_every_table_says_nothing(
    p: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "max_min_p", lambda table, *, seed: p)
    assert shares(drawn(0), 0)["disparity", ""] == 0.0
    assert unlike_right_ones(drawn(0), 0) == [
        "disparity: says 0.00 of what a right test says of exchanged names (0.75 to 1.13 would do)"
    ]


@pytest.mark.parametrize("times", [(2, 1), (1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_one_of_templates_and_pairs_counted_twice_is_noticed(
    times: tuple[int, int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = crossed_contrast
    monkeypatch.setattr(exchanges, "crossed_contrast", lambda table, **more: honest(np.tile(table, times), **more))
    what = "templates" if times[0] == 2 else "word pairs"
    found = unlike_right_ones(drawn(seed), seed)
    assert any(line.startswith(f"contrast of {what} alone: says 1.") for line in found)
