"""What no interval of few values can know is shown by a script that counts rightly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import skew, t

from tests.benchmark_script import benchmark_script


@pytest.fixture(scope="module")
def hidden() -> Any:
    return benchmark_script("coverage_hidden")


def test_samples_are_held_by_a_t_that_grows_with_the_skewness(hidden: Any) -> None:
    values = np.random.default_rng(0).exponential(size=(50, 8)) - 1
    found = hidden.Samples.of(values)
    half = t.ppf(0.975, 7) * values.std(axis=1, ddof=1) / 8**0.5
    up = 1 + 15 / 8 * np.maximum(0, skew(values, axis=1))
    held = (values.mean(axis=1) + up * half >= 0) & (values.mean(axis=1) - half <= 0)
    assert (found.held() == held).all() and 0 < held.mean() < 1
    assert (found.held(2.0) == (values.mean(axis=1) + 2 * up * half >= 0) & (values.mean(axis=1) - half <= 0)).all()


def test_the_samples_that_miss_a_hidden_tenth_look_normal_and_to_rule_others_out_makes_it_worse(hidden: Any) -> None:
    lines = {(line.shape, line.n): line for line in hidden.lines(3000)}
    for n in hidden.SIZES:
        line, even = lines["a tenth far off", n], lines["normal", n]
        assert line.coverage < 0.93 < even.coverage and line.looks_normal > 0.9
        assert line.longer > 1.05 and line.normal_then > 0.97
        assert line.coverage_kept < line.coverage - 0.05
