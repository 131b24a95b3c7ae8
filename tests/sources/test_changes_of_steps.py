"""A statistic of few possible values: of exchanges that change it alike those count that change the scores as much."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, _finer, _Work, change_between
from lm_audit.sources.evaluation import gathered
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


def plain_cliff(right: np.ndarray) -> float:
    """Of lengths 1000, 2000, ... and their answers: up to where all of four are right."""
    shown = np.cumprod(right.all(axis=1))
    return 1000.0 * float(shown.sum())


@pytest.mark.parametrize("lengths", [4, 5])
def test_exchanges_that_move_a_cliff_as_far_are_told_apart_by_the_answers(lengths: int) -> None:
    """Held against all exchanges of the answers that moved."""
    before = np.ones((lengths, 4))
    after = before.copy()
    after[2, :2] = after[3, 1:] = 0.0
    after[lengths - 1, 0] = 0.0
    before[lengths - 1, 3] = 0.0
    moved = np.argwhere(before != after)

    def sizes() -> list[float]:
        found = []
        for pattern in product((False, True), repeat=len(moved)):
            one, other = before.copy(), after.copy()
            for (k, n), turned in zip(moved, pattern, strict=True):
                if turned:
                    one[k, n], other[k, n] = other[k, n], one[k, n]
            steps = plain_cliff(other) - plain_cliff(one)
            # Less than a thousandth of the observed change for all answers together.
            found.append(abs(steps + 1e-3 * abs(observed) * (other - one).mean()))
        return found

    observed = plain_cliff(after) - plain_cliff(before)
    known = sizes()
    share = float(np.mean([size >= known[0] - 1e-9 for size in known]))
    source = MetricSource("needle.cliff", options={"score": "v", "threshold": 0.39})
    runs = [
        RowTable([{"item": f"{k}/{n}", "length": 1000 * (k + 1), "v": float(v)} for (k, n), v in np.ndenumerate(run)])
        for run in (before, after)
    ]
    found = change_between(source, *runs, resolution=0.01)
    assert isinstance(found, Change) and found.difference.value == observed
    assert found.p == pytest.approx(share)
    # Towards a target the distance alone counts: exchanges that move it as far are one.
    aimed = change_between(source, *runs, target=0.0, resolution=0.01)
    assert isinstance(aimed, Change) and aimed.p is not None and aimed.p > share


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.25, 0.75), (0.5, 0.5)])
@pytest.mark.parametrize("step", [-2000.0, 0.0, 1000.0])
def test_what_tells_exchanges_apart_is_a_thousandth_of_the_change_for_all_scores(
    low: float, high: float, step: float
) -> None:
    """Of a change of ``step``, by the share of the scores' span that their mean moves; nothing where neither moves."""
    before, after = np.array([high, high, low, low]), np.array([low, high, low, high])
    runs = [
        gathered(CLIFF, RowTable([{"item": f"{k}", "length": 1000, "v": float(v)} for k, v in enumerate(run)]))
        for run in (before, after)
    ]

    def evaluate(weights: np.ndarray) -> np.ndarray:
        """Of whole runs alone: 500 tokens of the first, ``step`` more of the second."""
        return 500.0 + step * weights[:, -1]

    finer = _finer(_Work(CLIFF, None, 0.01, 0), evaluate, *runs)
    none, ones = np.zeros((2, 4)), np.ones((2, 4))
    exchanged = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    first = np.hstack([ones - exchanged, exchanged]), np.hstack([exchanged, ones - exchanged])
    assert finer(np.hstack([ones, none]), np.hstack([none, ones])) == pytest.approx([0.0, 0.0])
    # With item 0 turned the mean goes up by two spans of four items, with the others turned down by as much.
    moved = 0.0 if low == high else 1e-3 * abs(step) * 2 / 4
    assert finer(*first) == pytest.approx([moved, -moved])
