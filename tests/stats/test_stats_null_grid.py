"""The reported test on a templates x pairs grid keeps its level; shuffling one side alone does not."""

from __future__ import annotations

import numpy as np

from lm_audit.stats import crossed_contrast, max_min_two_way
from tests.present import present

GRIDS = 2000


def null_contrast(rng: np.random.Generator) -> np.ndarray:
    """The difference of two groups without an effect, with the variance components measured on a real model."""
    by_template, by_pair, by_cell = (
        rng.normal(scale=np.sqrt(2 * variance), size=size)
        for variance, size in ((0.078, (12, 1)), (0.188, (1, 12)), (0.338, (12, 12)))
    )
    return by_template + by_pair + by_cell


def test_false_positive_rates_on_null_grids() -> None:
    rng = np.random.default_rng(5)
    contrasts = [crossed_contrast(null_contrast(rng), n_resamples=999, seed=seed) for seed in range(GRIDS)]
    two_way = np.mean([present(c.two_way.value) <= 0.05 for c in contrasts])
    templates, pairs, larger = (
        np.mean([getattr(c.sign_flip, side).value <= 0.05 for c in contrasts]) for side in ("rows", "columns", "larger")
    )
    assert two_way <= 0.065
    assert abs(templates - 0.223) < 0.03
    assert abs(pairs - 0.082) < 0.02
    assert larger <= pairs


def test_the_omnibus_test_keeps_its_level_and_finds_a_shifted_group() -> None:
    rng = np.random.default_rng(6)
    answers = []
    for seed in range(300):
        groups = np.stack([null_contrast(rng) / np.sqrt(2) for _ in range(5)])
        shifted = groups + 2.0 * (np.arange(5) == 3)[:, None, None]
        answers.append(
            [present(max_min_two_way(table, n_resamples=499, seed=seed).value) <= 0.05 for table in (groups, shifted)]
        )
    null, power = np.mean(answers, axis=0)
    assert null <= 0.08
    assert power >= 0.95


def test_groups_without_any_difference_have_p_one() -> None:
    alike = np.repeat(np.random.default_rng(0).normal(size=(1, 4, 5)), 3, axis=0)
    assert max_min_two_way(alike, n_resamples=99, seed=0).value == 1
