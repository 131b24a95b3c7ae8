"""The reported test on a templates x pairs grid keeps its level; shuffling one side alone does not."""

from __future__ import annotations

import numpy as np

from harness.stats import crossed_contrast

GRIDS = 2000


def null_contrast(rng: np.random.Generator) -> np.ndarray:
    """The difference of two groups without an effect, with the variance components measured on a real model."""
    by_template, by_pair, by_cell = (
        rng.normal(scale=np.sqrt(2 * variance), size=size)
        for variance, size in ((0.078, (12, 1)), (0.188, (1, 12)), (0.338, (12, 12)))
    )
    return by_template + by_pair + by_cell


def test_false_positive_rates_on_null_grids():
    rng = np.random.default_rng(5)
    contrasts = [crossed_contrast(null_contrast(rng), n_resamples=999, seed=seed) for seed in range(GRIDS)]
    two_way = np.mean([c.two_way.value <= 0.05 for c in contrasts])
    templates, pairs, larger = (
        np.mean([getattr(c.sign_flip, side).value <= 0.05 for c in contrasts]) for side in ("rows", "columns", "larger")
    )
    assert two_way <= 0.065
    assert abs(templates - 0.223) < 0.03
    assert abs(pairs - 0.082) < 0.02
    assert larger <= pairs
