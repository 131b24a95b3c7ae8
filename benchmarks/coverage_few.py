"""True coverage of intervals from few values, few clusters, few members: rows of `coverage_simulation.py`, or alone.

python benchmarks/coverage_few.py --runs 1000
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import RESAMPLES, Limits, Row, markdown, rate_rows
from scipy.stats import norm, t

from lm_audit.stats import bootstrap_clustered, crossed_contrast, mean_interval, roc_auc, tpr_at_fpr


def within(estimate: Limits, truth: float) -> bool:
    """Whether an interval holds the truth; an interval that is withheld says nothing false."""
    return estimate.low is None or estimate.high is None or estimate.low <= truth <= estimate.high


def means(runs: int) -> Iterator[Row]:
    """The mean of few values and of few clusters."""
    draws: dict[str, tuple[Callable[..., np.ndarray], float]] = {
        "normal values": (lambda rng, n: rng.normal(size=n), 0.0),
        "exponential values": (lambda rng, n: rng.exponential(size=n), 1.0),
        "yes-no answers, 10% yes": (lambda rng, n: (rng.random(n) < 0.1).astype(float), 0.1),
    }
    for name, (draw, truth) in draws.items():
        for n in (8, 12, 24):

            def values(
                rng: np.random.Generator,
                seed: int,
                draw: Callable[..., np.ndarray] = draw,
                n: int = n,
                truth: float = truth,
            ) -> dict[str, bool]:
                return {"mean_interval": within(mean_interval(draw(rng, n), n_resamples=RESAMPLES, seed=seed), truth)}

            yield from rate_rows(f"mean of {n} {name}", 0.95, runs, values)
    for count in (6, 8, 12):

        def clusters(rng: np.random.Generator, seed: int, count: int = count) -> dict[str, bool]:
            label = np.repeat(np.arange(count), rng.integers(1, 21, count))
            data = rng.normal(size=count)[label] + rng.normal(size=len(label))
            jackknife = bootstrap_clustered(data, label, lambda x: float(np.mean(x)), n_resamples=RESAMPLES, seed=seed)
            return {
                "mean_interval, clusters": within(mean_interval(data, label, n_resamples=RESAMPLES, seed=seed), 0.0),
                "bootstrap_clustered, own statistic": within(jackknife, 0.0),
            }

        yield from rate_rows(f"mean in {count} clusters of 1 to 20", 0.95, runs, clusters)
    for rows, columns in ((6, 6), (7, 12)):

        def table(rng: np.random.Generator, seed: int, rows: int = rows, columns: int = columns) -> dict[str, bool]:
            cells = rng.normal(size=(rows, 1)) + rng.normal(size=(1, columns)) + rng.normal(size=(rows, columns))
            return {"crossed_contrast (two-way t)": within(crossed_contrast(cells, seed=seed).difference, 0.0)}

        yield from rate_rows(f"mean of a {rows} x {columns} grid", 0.95, runs, table)


def ranking(runs: int) -> Iterator[Row]:
    """AUC with few members and near 1, TPR at a low FPR."""
    for members, controls in ((8, 100), (15, 15), (15, 200), (24, 24), (50, 200)):
        for auc in (0.5, 0.7, 0.9, 0.98):
            shift = float(np.sqrt(2) * norm.ppf(auc))

            def area(
                rng: np.random.Generator,
                seed: int,
                m: int = members,
                n: int = controls,
                shift: float = shift,
                auc: float = auc,
            ) -> dict[str, bool]:
                return {"roc_auc": within(roc_auc(rng.normal(shift, size=m), rng.normal(size=n)), auc)}

            yield from rate_rows(f"AUC {auc}, {members} members, {controls} controls", 0.95, runs, area)
    tails: dict[str, Any] = {"": norm, ", t of 2": t(2), ", t of 3": t(3)}
    for members, controls, fpr in (
        (50, 200, 0.01),
        (20, 100, 0.05),
        (100, 200, 0.05),
        (200, 400, 0.01),
        (300, 100, 0.05),
        (50, 1000, 0.001),
        (200, 1000, 0.001),
    ):
        for shift, (tail, law) in itertools.product((0.5, 1.5, 3.0), tails.items()):

            def rate(
                rng: np.random.Generator,
                seed: int,
                m: int = members,
                n: int = controls,
                fpr: float = fpr,
                shift: float = shift,
                law: Any = law,
            ) -> dict[str, bool]:
                scores, others = (law.rvs(size=size, random_state=rng) for size in (m, n))
                found = tpr_at_fpr(shift + scores, others, str(fpr))
                return {"tpr_at_fpr": within(found, float(law.sf(law.isf(fpr) - shift)))}

            yield from rate_rows(
                f"TPR at {fpr:.1%} FPR, shift {shift}{tail}, {members} members, {controls} controls", 0.95, runs, rate
            )


def all_rows(runs: int) -> Iterator[Row]:
    """All rows of this module."""
    yield from means(runs)
    yield from ranking(runs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="repetitions of each case (default 1000)")
    print(markdown(all_rows(parser.parse_args().runs), "coverage"))
