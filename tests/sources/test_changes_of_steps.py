"""A statistic of few possible values: of exchanges that change it alike those count that change the scores as much."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.units import RowTable

CLIFF = MetricSource("needle.cliff", options={"score": "v", "threshold": 0.5})


def cliff_change(before: list[float], after: list[float], seed: int = 0, noise: float = 0.1) -> Change:
    """Of a grid of lengths with these chances of an answer, 24 samples of each; samples are alike in both runs."""
    rng = np.random.default_rng(seed)
    drawn = rng.random((len(before), 24))
    apart = np.where(np.arange(len(before)) < 2, 0.1, noise)
    runs = [
        [
            {"item": f"{k}/{n}", "length": 1000 * (k + 1), "v": float(value < chances[k])}
            for (k, n), value in np.ndenumerate(drawn + apart[:, None] * rng.normal(size=drawn.shape))
        ]
        for chances in (before, after)
    ]
    found = change_between(CLIFF, RowTable(runs[0]), RowTable(runs[1]), seed=seed, resolution=0.01)
    assert isinstance(found, Change)
    return found


def test_a_cliff_that_moves_by_two_lengths_is_found() -> None:
    found = cliff_change([0.97, 0.97, 0.97, 0.97], [0.97, 0.97, 0.35, 0.3])
    assert found.difference.value == -2000.0
    assert found.p is not None and found.p < 0.01


@pytest.mark.slow
def test_a_cliff_that_stays_has_not_changed_whatever_the_scores_do() -> None:
    found = cliff_change([0.97, 0.97, 0.35, 0.3], [0.97, 0.97, 0.05, 0.02])
    assert (found.difference.value, found.p) == (0.0, 1.0)


@pytest.mark.slow
def test_a_cliff_that_chance_moves_is_seldom_called_changed() -> None:
    """As many answers at the last two lengths as may just show half: the cliff moves in half of the runs."""
    found = [cliff_change([0.97, 0.97, 0.9, 0.9], [0.97, 0.97, 0.9, 0.9], seed, 0.5) for seed in range(40)]
    assert sum(one.difference.value != 0 for one in found) > 10
    assert sum(one.p is not None and one.p <= 0.05 for one in found) <= 5
