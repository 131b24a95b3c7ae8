"""An interval of few values that look strongly skewed says what it cannot know; others say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.stats import Estimate, mean_interval, studentised_difference, studentised_mean

SKEWED = np.array([0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.9, 1.1, 9.0])
EVEN = np.linspace(-1, 1, 10)


def of(values: np.ndarray) -> list[Estimate]:
    return [
        mean_interval(values, n_resamples=199),
        mean_interval(np.repeat(values, 2), np.repeat(np.arange(len(values)), 2), n_resamples=199),
        studentised_mean(values, n_resamples=199),
        studentised_difference(values, np.linspace(0, 0.1, 40), n_resamples=199).difference,
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_few_skewed_values_say_so(sign: int) -> None:
    for found in of(sign * SKEWED):
        assert found.low is not None and found.note is not None
        assert found.note.startswith("strongly skewed (") and ("-2" in found.note) == (sign < 0)


def test_even_ones_and_many_do_not() -> None:
    assert [found.note for found in of(EVEN)] == [None] * 4
    assert mean_interval(np.tile(SKEWED, 4), n_resamples=199).note is None
    assert studentised_mean(np.tile(SKEWED, 4), n_resamples=199).note is None
