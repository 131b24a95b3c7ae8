"""True rates at which every test rejects a true null hypothesis at 5%, and bounds that claim too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from coverage_intervals import DRAWS, group_grid, null_grid
from coverage_rows import RESAMPLES, Row, rate_rows
from scipy.stats import binom, ttest_1samp

from lm_audit.stats import (
    crossed_contrast,
    crossed_equivalence,
    epsilon_from_rates,
    equivalence_test,
    max_min_permutation,
    max_min_two_way,
    mcnemar_exact,
    one_run_epsilon,
    permutation_test,
    sign_flip_test,
)

ALPHA = 0.05


def rejects(p: float | None) -> bool:
    """Whether a p-value is significant at 5%."""
    return p is not None and p <= ALPHA


def grids(runs: int, effect: float, nominal: float) -> Iterator[Row]:
    """A contrast on a 12 x 12 grid of templates and pairs, by five tests."""

    def once(rng: np.random.Generator, seed: int) -> dict[str, bool]:
        table = null_grid(rng, 12, 12) + effect
        answer = crossed_contrast(table, n_resamples=RESAMPLES, seed=seed)
        return {
            "t-test over cells as if independent": rejects(float(ttest_1samp(table.ravel(), 0).pvalue)),
            "sign flip over templates": rejects(answer.sign_flip.rows.value),
            "sign flip over pairs": rejects(answer.sign_flip.columns.value),
            "larger of the two sign flips": rejects(answer.sign_flip.larger.value),
            "two-way bootstrap": rejects(answer.two_way.value),
        }

    what = "no effect" if effect == 0 else f"effect of {effect} nats"
    yield from rate_rows(f"12 x 12 grid, {what}", nominal, runs, once)


def max_min(runs: int) -> Iterator[Row]:
    """The omnibus test on 9 groups x 12 templates x 12 pairs without a group effect."""

    def once(rng: np.random.Generator, seed: int) -> dict[str, bool]:
        values = np.stack([group_grid(rng, 12, 12) for _ in range(9)])
        answer = max_min_permutation(values, n_resamples=RESAMPLES, seed=seed)
        assert answer.note is not None
        templates, pairs = (float(part.split("p = ")[1]) for part in answer.note.split(", "))
        return {
            "max_min_permutation within templates alone": rejects(templates),
            "max_min_permutation within pairs alone": rejects(pairs),
            "max_min_permutation (larger of the two)": rejects(answer.value),
            "max_min_two_way": rejects(max_min_two_way(values, n_resamples=RESAMPLES, seed=seed).value),
        }

    yield from rate_rows("9 groups x 12 templates x 12 pairs, no effect", ALPHA, runs, once)


def permutations(runs: int) -> Iterator[Row]:
    """Sign flip and two-sample permutation; skewed differences break the sign flip's symmetry on purpose."""
    for shape, (draw, mean, _) in DRAWS.items():
        for n in (8, 24, 50):

            def once(
                rng: np.random.Generator,
                seed: int,
                draw: Callable[..., np.ndarray] = draw,
                mean: float = mean,
                n: int = n,
            ) -> dict[str, bool]:
                x, y = draw(rng, n) - mean, draw(rng, n) - mean
                return {
                    "sign_flip_test": rejects(sign_flip_test(x, n_resamples=RESAMPLES, seed=seed).value),
                    "permutation_test": rejects(permutation_test(x, y, n_resamples=RESAMPLES, seed=seed).value),
                }

            yield from rate_rows(f"{n} {shape} values (a side)", ALPHA, runs, once)


def paired_answers(runs: int) -> Iterator[Row]:
    """McNemar's test on two runs of equal accuracy."""
    for n in (50, 200):

        def once(rng: np.random.Generator, seed: int, n: int = n) -> dict[str, bool]:
            hard = rng.random(n) < 0.5
            a, b = (np.where(hard, rng.random(n) < 0.5, 1.0).astype(float) for _ in range(2))
            return {"mcnemar_exact": rejects(mcnemar_exact(a, b).value)}

        yield from rate_rows(f"{n} paired answers, half of them uncertain", ALPHA, runs, once)


def equivalence(runs: int) -> Iterator[Row]:
    """A true effect that lies on the margin must rarely be called small."""
    for n in (10, 50):

        def once(rng: np.random.Generator, seed: int, n: int = n) -> dict[str, bool]:
            return {"equivalence_test": rejects(equivalence_test(rng.normal(0.5, size=n), 0.5).value)}

        yield from rate_rows(f"{n} differences, true mean on the margin", ALPHA, runs, once)

    def once_crossed(rng: np.random.Generator, seed: int) -> dict[str, bool]:
        answer = crossed_equivalence(null_grid(rng, 12, 12) + 0.5, 0.5, n_resamples=RESAMPLES, seed=seed)
        return {"crossed_equivalence": rejects(answer.value)}

    yield from rate_rows("12 x 12 grid, true mean on the margin", ALPHA, runs, once_crossed)


def epsilon_bounds() -> Iterator[Row]:
    """Exact rates at which a lower bound exceeds the true epsilon of randomised response."""
    for r in (24, 100):
        bounds = np.array([one_run_epsilon(r, r, v, 0.0).value for v in range(r + 1)])
        for eps in (0.5, 1.0, 2.0):
            right = np.exp(eps) / (1 + np.exp(eps))
            rate = float(binom.pmf(np.arange(r + 1), r, right)[bounds > eps].sum())
            yield Row("one_run_epsilon", f"{r} guesses, true epsilon {eps}", ALPHA, rate, None)
    n = 100
    bounds = np.array([[epsilon_from_rates(tp, n, fp, n, 0.0).value for fp in range(n + 1)] for tp in range(n + 1)])
    for eps in (0.5, 1.0, 2.0):
        right = np.exp(eps) / (1 + np.exp(eps))
        hits, false = (binom.pmf(np.arange(n + 1), n, p) for p in (right, 1 - right))
        rate = float(np.outer(hits, false)[bounds > eps].sum())
        yield Row("epsilon_from_rates", f"{n} members, {n} controls, true epsilon {eps}", ALPHA, rate, None)


def all_rows(runs: int) -> list[Row]:
    """Every test under its null hypothesis."""
    parts = (
        grids(2 * runs, 0.0, ALPHA),
        max_min(max(1, runs // 2)),
        permutations(runs),
        paired_answers(runs),
        equivalence(runs),
        epsilon_bounds(),
    )
    return [row for part in parts for row in part]


def power_rows(runs: int) -> list[Row]:
    """The same tests on a grid with an effect of 0.5 nats; here a high rate is good."""
    return list(grids(runs, 0.5, 1.0))
