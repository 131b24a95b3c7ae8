"""Adaptive sampling against a full grid on known response surfaces: the same cliff, a third of the samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from lm_audit.audits.needle.grid.adaptive import AdaptiveRun, Place, find_cliff
from lm_audit.audits.needle.grid.cells import share
from lm_audit.audits.needle.grid.cliff import cliff
from lm_audit.errors import UsageError
from lm_audit.stats import Estimate

LENGTHS = [4096 * (i + 1) for i in range(16)]
DEPTHS = [10.0 * i for i in range(11)]
MOST = 20
THRESHOLD = 0.85


def response(length: int, depth: float, *, middle: int, steepness: int) -> float:
    """Accuracy: a logistic fall in length, with a dip in the middle of the prompt ("lost in the middle")."""
    base = 0.995 / (1 + np.exp((length - middle) / steepness))
    return float(base * (1 - 0.1 * np.sin(np.pi * depth / 100) * length / LENGTHS[-1]))


def draws(seed: int, **surface: int) -> NDArray[np.float64]:
    """One answer for every sample of the full grid: [lengths, depths, samples] of 0 and 1."""
    rng = np.random.default_rng(seed)
    chance = np.array([[response(n, d, **surface) for d in DEPTHS] for n in LENGTHS])
    return (rng.random((len(LENGTHS), len(DEPTHS), MOST)) < chance[..., None]).astype(float)


def run_both(answers: NDArray[np.float64]) -> tuple[Estimate, AdaptiveRun]:
    """The full grid's cliff, and the adaptive run on the same answers."""
    full = cliff({n: share(answers[i].ravel()) for i, n in enumerate(LENGTHS)}, THRESHOLD)

    def ask(places: Sequence[Place]) -> list[float]:
        return [answers[LENGTHS.index(length), DEPTHS.index(depth), number] for length, depth, number in places]

    return full, find_cliff(LENGTHS, DEPTHS, ask, threshold=THRESHOLD, most=MOST)


@pytest.mark.parametrize("middle", [15_000, 30_000, pytest.param(45_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("steepness", [800, 3000])
def test_same_cliff_with_a_third_of_the_samples(middle: int, steepness: int) -> None:
    agree, spent = 0, []
    for seed in range(25):
        full, adaptive = run_both(draws(seed, middle=middle, steepness=steepness))
        agree += full.value == adaptive.cliff.value
        spent.append(adaptive.samples / adaptive.full)
    assert agree >= 24
    assert max(spent) <= 1 / 3


def test_full_grid_is_spent_at_most() -> None:
    answers = np.zeros((len(LENGTHS), len(DEPTHS), MOST))
    answers[..., ::7] = 1.0
    answers[:, :, :] = 1.0
    answers[:, ::5, ::2] = 0.0  # 0.86: near the threshold at every length
    _, adaptive = run_both(answers)
    assert adaptive.samples <= adaptive.full
    assert all(len(scores) <= MOST * len(DEPTHS) for scores in adaptive.scores.values())


def test_lengths_beyond_the_cliff_get_one_round() -> None:
    answers = np.ones((len(LENGTHS), len(DEPTHS), MOST))
    answers[4:] = 0.0
    full, adaptive = run_both(answers)
    assert adaptive.cliff.value == full.value == LENGTHS[3]
    assert all(len(adaptive.scores[length]) == len(DEPTHS) for length in LENGTHS[5:])


def test_precision_stops_earlier() -> None:
    answers = draws(1, middle=30_000, steepness=3000)

    def ask(places: Sequence[Place]) -> list[float]:
        return [answers[LENGTHS.index(length), DEPTHS.index(depth), number] for length, depth, number in places]

    loose = find_cliff(LENGTHS, DEPTHS, ask, threshold=THRESHOLD, most=MOST, precision=0.1)
    tight = find_cliff(LENGTHS, DEPTHS, ask, threshold=THRESHOLD, most=MOST)
    assert loose.samples < tight.samples


def test_no_place_is_asked_for_twice() -> None:
    asked: list[Place] = []

    def ask(places: Sequence[Place]) -> list[float]:
        asked.extend(places)
        return [1.0 if length < 30_000 else 0.8 for length, _, _ in places]

    run = find_cliff(LENGTHS, DEPTHS, ask, threshold=THRESHOLD, most=MOST)
    assert len(asked) == len(set(asked)) == run.samples


def test_bad_arguments_are_errors() -> None:
    with pytest.raises(UsageError):
        find_cliff(LENGTHS, DEPTHS, lambda cells: [], threshold=1.5, most=3)
