"""True coverage of every 95% interval at the sample sizes that audits use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypedDict

import numpy as np
from coverage_rows import RESAMPLES, Limits, Row, rate_rows
from scipy.stats import binom, norm

from lm_audit.stats import (
    bootstrap_ci,
    bootstrap_clustered,
    bootstrap_crossed,
    bootstrap_two_sample,
    clopper_pearson,
    roc_auc,
    share_difference,
    tpr_at_fpr,
    tpr_statistic,
    wilson,
)

DRAWS: dict[str, tuple[Callable[..., np.ndarray], float, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0, float(np.log(2))),
}


class Resampling(TypedDict):
    """How often a bootstrap resamples."""

    n_resamples: int


OPTIONS: Resampling = {"n_resamples": RESAMPLES}


def covers(estimate: Limits, truth: float) -> bool:
    """Whether an interval holds the truth; no interval covers nothing."""
    return estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high


def one_sample(runs: int) -> Iterator[Row]:
    """Mean and median of normal and skewed values."""
    for shape, (draw, mean, median) in DRAWS.items():
        for statistic, truth, sizes in (("mean", mean, (10, 24, 50, 100, 500)), ("median", median, (24, 100))):
            for n in sizes:

                def once(
                    rng: np.random.Generator,
                    seed: int,
                    draw: Callable[..., np.ndarray] = draw,
                    n: int = n,
                    statistic: str = statistic,
                    truth: float = truth,
                ) -> dict[str, bool]:
                    data = draw(rng, n)
                    found = {"bootstrap_ci": covers(bootstrap_ci(data, statistic, seed=seed, **OPTIONS), truth)}
                    for method in ("BCa", "percentile"):
                        interval = bootstrap_ci(data, statistic, method=method, seed=seed, **OPTIONS)
                        found[f"bootstrap_ci {method}"] = covers(interval, truth)
                    return found

                yield from rate_rows(f"{statistic} of {n} {shape} values", 0.95, runs, once)


def shares() -> Iterator[Row]:
    """Exact mean and least coverage of intervals for shares, over a grid of true shares."""
    truths = np.linspace(0.005, 0.995, 199)
    for name, function in (("clopper_pearson", clopper_pearson), ("wilson", wilson)):
        for n in (10, 50, 100, 500):
            limits = [function(k, n) for k in range(n + 1)]
            low, high = (np.array([getattr(e, side) for e in limits]) for side in ("low", "high"))
            weights = binom.pmf(np.arange(n + 1), n, truths[:, None])
            covered = (weights * ((low <= truths[:, None]) & (truths[:, None] <= high))).sum(axis=1)
            yield Row(name, f"share of {n}, mean over true shares 0.5% to 99.5%", 0.95, float(covered.mean()), None)
            yield Row(name, f"share of {n}, worst of them", 0.95, float(covered.min()), None)


def share_differences() -> Iterator[Row]:
    """Exact coverage of Newcombe's interval for two shares."""
    for n, p, q in ((50, 0.1, 0.1), (50, 0.1, 0.4), (200, 0.02, 0.05)):
        counts = np.arange(n + 1)
        weights = np.outer(binom.pmf(counts, n, p), binom.pmf(counts, n, q))
        likely = np.argwhere(weights > 1e-9)
        rate = sum(weights[k, h] for k, h in likely if covers(share_difference(k, n, h, n), q - p))
        yield Row("share_difference", f"{n} and {n} answers, true shares {p:.0%} and {q:.0%}", 0.95, float(rate), None)


def ranking(runs: int) -> Iterator[Row]:
    """AUC and TPR of normal scores."""
    for members, controls in ((20, 20), (50, 50), (100, 200)):
        for auc in (0.5, 0.7, 0.9):
            shift = float(np.sqrt(2) * norm.ppf(auc))

            def once(
                rng: np.random.Generator,
                seed: int,
                members: int = members,
                controls: int = controls,
                auc: float = auc,
                shift: float = shift,
            ) -> dict[str, bool]:
                scores = rng.normal(shift, size=members), rng.normal(size=controls)
                answers = {"roc_auc": covers(roc_auc(*scores), auc)}
                for method in ("percentile", "BCa"):
                    interval = bootstrap_two_sample(*scores, "roc_auc", method=method, seed=seed, **OPTIONS)
                    answers[f"bootstrap_two_sample {method}"] = covers(interval, auc)
                return answers

            yield from rate_rows(f"AUC {auc}, {members} members, {controls} controls", 0.95, runs, once)
    yield from detection_rates(runs)


def detection_rates(runs: int) -> Iterator[Row]:
    """TPR at 5% FPR: the truth is the rate at the threshold of infinitely many controls."""
    for members, controls in ((50, 100), (100, 200), (200, 1000)):
        truth = float(norm.sf(norm.isf(0.05) - 1.0))

        def once(
            rng: np.random.Generator, seed: int, members: int = members, controls: int = controls, truth: float = truth
        ) -> dict[str, bool]:
            scores = rng.normal(1.0, size=members), rng.normal(size=controls)
            rate = tpr_at_fpr(*scores, 0.05)
            interval = bootstrap_two_sample(*scores, tpr_statistic(0.05), method="percentile", seed=seed, **OPTIONS)
            return {
                "tpr_at_fpr": covers(rate, truth),
                "bootstrap_two_sample tpr_statistic": covers(interval, truth),
            }

        yield from rate_rows(f"TPR at 5% FPR, {members} members, {controls} controls", 0.95, runs, once)


def clustered(runs: int) -> Iterator[Row]:
    """Values whose clusters hold half of their variance; sizes from 1 to 20."""
    for clusters in (10, 30, 77):

        def once(rng: np.random.Generator, seed: int, clusters: int = clusters) -> dict[str, bool]:
            labels = np.repeat(np.arange(clusters), rng.integers(1, 21, clusters))
            data = rng.normal(size=clusters)[labels] + rng.normal(size=len(labels))
            by_cluster = bootstrap_clustered(data, labels, method="percentile", seed=seed, **OPTIONS)
            return {
                "bootstrap_clustered (the t of mean_interval)": covers(bootstrap_clustered(data, labels), 0.0),
                "bootstrap_clustered percentile": covers(by_cluster, 0.0),
                "bootstrap_ci percentile, clusters ignored": covers(
                    bootstrap_ci(data, method="percentile", seed=seed, **OPTIONS), 0.0
                ),
            }

        yield from rate_rows(f"mean in {clusters} clusters of 1 to 20", 0.95, runs, once)


def crossed(runs: int) -> Iterator[Row]:
    """Contrasts on a templates x pairs grid with the variance components of the bias specification."""
    for rows, columns in ((8, 8), (12, 12), (24, 24)):

        def once(rng: np.random.Generator, seed: int, rows: int = rows, columns: int = columns) -> dict[str, bool]:
            table = null_grid(rng, rows, columns)
            return {
                "bootstrap_crossed": covers(bootstrap_crossed(table, seed=seed, **OPTIONS), 0.0),
                "bootstrap_ci percentile, cells as if independent": covers(
                    bootstrap_ci(table.ravel(), method="percentile", seed=seed, **OPTIONS), 0.0
                ),
            }

        yield from rate_rows(f"mean of a {rows} x {columns} grid", 0.95, runs, once)


def group_grid(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A group's scores without an effect: variance 0.078 by template, 0.188 by pair, 0.338 by cell."""
    by_row = rng.normal(scale=np.sqrt(0.078), size=(rows, 1))
    by_column = rng.normal(scale=np.sqrt(0.188), size=(1, columns))
    return np.asarray(by_row + by_column + rng.normal(scale=np.sqrt(0.338), size=(rows, columns)))


def null_grid(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """The contrast of two such groups."""
    return np.asarray(group_grid(rng, rows, columns) - group_grid(rng, rows, columns))


def all_rows(runs: int) -> list[Row]:
    """Every interval."""
    few = max(1, runs // 2)
    parts = (one_sample(runs), shares(), share_differences(), ranking(few), clustered(runs), crossed(runs))
    return [row for part in parts for row in part]
